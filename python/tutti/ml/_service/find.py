"""Where the service is, as the command line finds it (find_service.h): what TUTTI_ADDRESS,
TUTTI_TOKEN and TUTTI_CERTIFICATE say, else the file service.json of its home."""
from __future__ import annotations

import json
import os
import pathlib
from typing import NamedTuple, Optional

from tutti.ml.exceptions import ServiceRequestError, ValidationException

_LARGEST = 1 << 20  # bytes of a file that says where the service is


class Endpoint(NamedTuple):
    """A service."""
    address: str  # https://HOST:PORT
    token: str
    certificate: str  # PEM; empty: by http, or by what this machine trusts

    def __repr__(self) -> str:
        return f"Endpoint(address={self.address!r})"  # its token is nobody's to read

    __str__ = __repr__


def home_folder() -> pathlib.Path:
    """The folder of the service that runs here, if one does."""
    named = os.environ.get("TUTTI_HOME")
    if named:
        return pathlib.Path(named).absolute()
    data = os.environ.get("XDG_DATA_HOME")
    if data:
        return pathlib.Path(data) / "tutti"
    return pathlib.Path(os.path.expanduser("~")) / ".local/share/tutti"


def _read(file: pathlib.Path) -> bytes:
    with open(file, "rb") as opened:
        content = opened.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"{file} is larger than {_LARGEST} bytes")
    return content


def _of_environment() -> Endpoint:
    file = os.environ.get("TUTTI_CERTIFICATE", "")
    certificate = ""
    if file:
        try:
            certificate = _read(pathlib.Path(file)).decode("ascii", "ignore")
        except (OSError, ValueError) as error:
            raise ValidationException(f"TUTTI_CERTIFICATE: {error}") from None
    return Endpoint(os.environ.get("TUTTI_ADDRESS", ""), os.environ.get("TUTTI_TOKEN", ""),
                    certificate)


def endpoint_of(file: pathlib.Path) -> Optional[Endpoint]:
    """The service of a service.json; None: it is not there."""
    try:
        document = json.loads(_read(file).decode("utf-8"))
        return Endpoint(document["address"], document["token"], document.get("certificate", ""))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ServiceRequestError(f"{file}: {error}") from None
    except (ValueError, KeyError, TypeError):
        raise ServiceRequestError(f"{file} is not readable: restart the service") from None


def _secured(service: Endpoint) -> Endpoint:
    """What is known by a certificate is not spoken to readably, whatever the address says."""
    if service.certificate and not service.address.startswith("https://"):
        raise ValidationException(
            f"TUTTI_ADDRESS is {service.address}, and the service is known by a certificate: write "
            "https://HOST:PORT, so that its token is not sent readably")
    return service


def find_service(home: pathlib.Path) -> Endpoint:
    """The service to talk to."""
    given, file = _of_environment(), home / "service.json"
    try:
        running = endpoint_of(file)
    except ServiceRequestError:
        if given.address and given.token:
            return _secured(given)
        raise
    if running is None:
        if given.address:
            return _secured(given)
        raise ServiceRequestError(
            f"no service runs with {home} as its home: start one with `tutti serve`, or say where "
            "one is with TUTTI_ADDRESS, TUTTI_TOKEN and TUTTI_CERTIFICATE")
    elsewhere = given.address not in ("", running.address)
    if elsewhere and not given.token and not running.certificate:
        raise ValidationException(
            f"TUTTI_ADDRESS is {given.address}, and the service of {file} is at {running.address}, "
            "without a certificate to know it by: its token is not sent elsewhere; set TUTTI_TOKEN "
            "to the other service's, or unset TUTTI_ADDRESS")
    of_this = given.token in ("", running.token) or not elsewhere
    certificate = running.certificate
    if not of_this or given.certificate:
        certificate = given.certificate
    return _secured(Endpoint(given.address or running.address, given.token or running.token,
                             certificate))
