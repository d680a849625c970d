"""Calls of the service's REST interface over HTTP. Thread-safe: each call has a connection."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import ssl
import time
import urllib.parse
import uuid
from typing import (
    Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, TypeVar, Union)

from tutti.ml._parameters import logger
from tutti.ml._service.find import Endpoint, find_service
from tutti.ml.exceptions import (
    AzureError, ClientAuthenticationError, HttpResponseError, ResourceExistsError,
    ResourceNotFoundError, ServiceRequestError, ValidationException)

_TIMEOUT = 30  # seconds that a call waits for the next bytes
_UPLOAD = 3600
_PAGE = 200  # jobs that a call lists
_GIVE_UP_CREATING = 60  # once an answer was lost
_GIVE_UP_FOLLOWING = 600  # without a service
T = TypeVar("T")
Body = Union[bytes, "_Archive", None]


class _Lost(ServiceRequestError):
    """The service was reached, and its answer did not come."""


class _Busy(_Lost):
    """The service has answered that it has no time now."""


_OF_STATUS = {400: ValidationException, 401: ClientAuthenticationError, 404: ResourceNotFoundError,
              409: ResourceExistsError, 503: _Busy}


def _error(status: int, body: bytes) -> AzureError:
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = f"the service answered with {status}: {body[:200].decode(errors='replace')}"
    kind = _OF_STATUS.get(status, HttpResponseError)
    if kind is ClientAuthenticationError:
        message = (f"{message}: the service refuses the token: set TUTTI_TOKEN to what is in the file "
                   "`token` of its home")
    error = kind(message)
    if isinstance(error, (HttpResponseError, _Busy)):
        error.status_code = status  # type: ignore[union-attr]
    return error


def _may_recover(error: Exception) -> bool:
    """Whether what follows a job goes on after it, as the command line's (outage.h)."""
    status = getattr(error, "status_code", None) or 0
    return isinstance(error, (ServiceRequestError, ValueError)) or status in (401, 429) \
        or status >= 500


@contextlib.contextmanager
def _network(service: Endpoint, kind: type) -> Iterator[None]:
    """Raises faults of the network as `kind`; within it stands nothing that uses this disk."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        what = f"the service at {service.address} is not reachable: {error}"
        if isinstance(error, ssl.SSLCertVerificationError):
            what += "; TUTTI_CERTIFICATE names a copy of its home's certificate.pem"
        raise kind(what) from None


class _Answer:
    """The service's answer."""

    def __init__(self, response: http.client.HTTPResponse, service: Endpoint) -> None:
        self._response, self._service = response, service

    def read(self, size: Optional[int] = None) -> bytes:
        """At most so many bytes of it, b"" at its end; all without `size`."""
        with _network(self._service, _Lost):
            return self._response.read(size)

    def __iter__(self) -> Iterator[bytes]:
        while True:
            with _network(self._service, _Lost):
                line = self._response.readline()
            if not line:
                return
            yield line


class _Archive:
    """A file that is sent, whose faults are not the network's."""

    def __init__(self, file: BinaryIO, path: pathlib.Path) -> None:
        self._file, self._path = file, path

    def read(self, size: int) -> bytes:
        """The next bytes of it."""
        try:
            return self._file.read(size)
        except OSError as error:
            raise ValidationException(f"{self._path}: {error}") from None


class Connection:
    """The service that `home` and the environment name, looked for anew at each call, so that one
    that came back at another address is found."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home

    def endpoint(self) -> Endpoint:
        """Where it is."""
        return find_service(self.home)

    def _open(self, service: Endpoint, timeout: float) -> http.client.HTTPConnection:
        address = service.address if "://" in service.address else "http://" + service.address
        url = urllib.parse.urlsplit(address)
        if url.scheme != "https":
            return http.client.HTTPConnection(url.hostname or "", url.port or 80, timeout=timeout)
        context = ssl.create_default_context()
        if service.certificate:
            try:
                context = ssl.create_default_context(cadata=service.certificate)
            except (ssl.SSLError, ValueError) as error:
                raise ValidationException(
                    f"TUTTI_CERTIFICATE, or that of service.json, is none: {error}") from None
            context.check_hostname = False  # the certificate itself is known
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN if hasattr(
                ssl, "VERIFY_X509_PARTIAL_CHAIN") else 0x80000
        return http.client.HTTPSConnection(url.hostname or "", url.port or 443, timeout=timeout,
                                           context=context)

    @contextlib.contextmanager
    def _answer(self, method: str, target: str, body: Body = None,
                headers: Optional[Mapping[str, str]] = None, timeout: float = _TIMEOUT
                ) -> Iterator[_Answer]:
        service = self.endpoint()
        connection = self._open(service, timeout)
        try:
            with _network(service, ServiceRequestError):
                connection.connect()
            with _network(service, _Lost):
                connection.request(method, target, body=body, headers={
                    "Authorization": f"Bearer {service.token}", "Content-Type": "application/json",
                    **(headers or {})})
                response = connection.getresponse()
                failed = b"" if response.status < 400 or method == "HEAD" else response.read()
            if response.status >= 400:
                raise _error(response.status, failed)
            yield _Answer(response, service)
        finally:
            connection.close()

    def call(self, method: str, target: str, body: Any = None, timeout: float = _TIMEOUT
             ) -> Dict[str, Any]:
        """What the service answers."""
        data = None if body is None else json.dumps(body).encode()
        with self._answer(method, target, data, timeout=timeout) as response:
            text = response.read()
        return dict(json.loads(text)) if text else {}

    # Jobs.

    def job(self, name: str) -> Dict[str, Any]:
        """A job's view."""
        return self.call("GET", job_target(name))

    def jobs(self, parent: Optional[str] = None) -> Iterator[Dict[str, Any]]:
        """All jobs, or the children of one, the newest first."""
        before: Optional[int] = None
        while True:
            query: Dict[str, Any] = {"limit": _PAGE}
            if parent is not None:
                query["parent"] = parent
            if before is not None:
                query["before"] = before
            page = self.call("GET", "/v1/jobs?" + urllib.parse.urlencode(query))["jobs"]
            yield from page
            if len(page) < _PAGE:
                return
            before = page[-1]["sequence"]

    def check_job(self, body: Mapping[str, Any]) -> List[str]:
        """The warnings of a job that would be taken."""
        return list(self.call("POST", "/v1/job-checks", body)["warnings"])

    def create_job(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Creates a job exactly once, also where the service's answer is lost: the body gets a nonce,
        by which the service knows it again."""
        return self._create("/v1/jobs", body, _TIMEOUT,
                            "the job may have been taken: ml_client.jobs.list() shows it")

    def _create(self, target: str, body: Mapping[str, Any], timeout: float, may_be: str
                ) -> Dict[str, Any]:
        body = {**body, "nonce": uuid.uuid4().hex}
        patience: Optional[_Patience] = None  # begins with the first failure
        was_lost = False
        while True:
            try:
                return self.call("POST", target, body, timeout)
            except ServiceRequestError as error:
                if patience is None:
                    if not isinstance(error, _Lost):
                        raise
                    logger.warning("%s; asking again", "the service is busy" if isinstance(
                        error, _Busy) else "the service's answer was lost")
                    patience = _Patience(_GIVE_UP_CREATING)
                was_lost = was_lost or not isinstance(error, _Busy)
                if patience.is_over():
                    if not was_lost:
                        raise
                    raise ServiceRequestError(f"{error}; {may_be}") from None
            patience.pause()

    def cancel_job(self, name: str) -> Dict[str, Any]:
        """Ends a job."""
        return self.call("POST", job_target(name, "/cancel"))

    def delete_job(self, name: str) -> None:
        """Removes an ended job."""
        self.call("DELETE", job_target(name))

    def files(self, name: str) -> List[Dict[str, Any]]:
        """A job's logs and outputs: path and bytes of each."""
        return list(self.call("GET", job_target(name, "/files"))["files"])

    def bring_file(self, name: str, path: str, size: Optional[int], target: pathlib.Path) -> None:
        """Writes a file of a job to `target`; it is there whole or not at all. size: its bytes; None:
        it may be written to meanwhile."""
        self._bring(job_target(name, "/files/" + urllib.parse.quote(path)), path, size, target)

    def _bring(self, source: str, path: str, size: Optional[int], target: pathlib.Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".part-{uuid.uuid4().hex}")  # target's name may be the longest
        came = 0
        try:
            with self._answer("GET", source) as answer:
                with open(partial, "wb") as file:
                    while True:
                        piece = answer.read(1 << 20)
                        if not piece:
                            break
                        came += len(piece)
                        file.write(piece)
            if size is not None and came != size:
                raise HttpResponseError(f"{path}: {came} bytes came instead of {size}")
            os.replace(partial, target)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink()

    def follow(self, name: str) -> Iterator[Dict[str, Any]]:
        """The lines of a job's stream until it has ended, also over a service that comes back;
        without the values that its ranks report."""
        cursor, patience = "", _Patience(_GIVE_UP_FOLLOWING)
        while True:
            query = {"follow": "true", "reports": "false", **({"cursor": cursor} if cursor else {})}
            try:
                with self._answer("GET", job_target(name, "/stream?" + urllib.parse.urlencode(query))
                                  ) as response:
                    for text in response:
                        line = json.loads(text) if text.strip() else {}
                        patience = _Patience(_GIVE_UP_FOLLOWING)
                        if "cursor" in line:
                            cursor = line["cursor"]
                            yield line
                if self.job(name)["state"] in ENDED:
                    return
            except (AzureError, ValueError) as error:
                patience.check(error)
            patience.pause()

    # Code.

    def has_snapshot(self, name: str) -> bool:
        """Whether an archive is there."""
        return self._has(f"/v1/snapshots/{name}")

    def _has(self, target: str) -> bool:
        def ask() -> bool:
            with self._answer("HEAD", target):
                return True

        try:
            return _once_it_has_time(ask)
        except ResourceNotFoundError:
            return False

    def put_snapshot(self, name: str, archive: pathlib.Path) -> None:
        """Sends an archive."""
        self._put(f"/v1/snapshots/{name}", archive, "application/zstd")

    def _put(self, target: str, archive: pathlib.Path, content_type: str) -> None:
        headers = {"Content-Type": content_type, "Content-Length": str(archive.stat().st_size)}

        def send() -> None:
            with open(archive, "rb") as file:
                body = _Archive(file, archive)
                with self._answer("PUT", target, body, headers, _UPLOAD) as response:
                    response.read()

        _once_it_has_time(send)

    # Models. A version is one, or "@LABEL"; where it may be "", the call is of the name.

    def send_model_file(self, sha256: str, path: pathlib.Path) -> None:
        """Sends a file whose bytes have that hash, unless it is there."""
        target = f"/v1/model-files/sha256:{sha256}"
        if not self._has(target):
            self._put(target, path, "application/octet-stream")

    def register_model(self, body: Mapping[str, Any]) -> Dict[str, Any]:
        """Registers a version exactly once."""
        return self._create("/v1/models", body, _UPLOAD,
                            "the model may be registered: ml_client.models.list() shows it")

    def models(self, archived: str) -> Iterator[Dict[str, Any]]:
        """All models by name; archived: "true", "false" or "all"."""
        after = ""
        while True:
            query = {"limit": _PAGE, "archived": archived, "after": after}
            page = self.call("GET", "/v1/models?" + urllib.parse.urlencode(query))
            yield from page["models"]
            if page["after"] is None:
                return
            after = page["after"]

    def model_versions(self, name: str) -> Iterator[Dict[str, Any]]:
        """All versions of one, the newest first."""
        before = 0
        while True:
            page = self.call("GET", model_target(name, "", f"/versions?limit={_PAGE}&before={before}"))
            yield from page["versions"]
            if page["before"] is None:
                return
            before = page["before"]

    def model_version(self, name: str, version: str) -> Dict[str, Any]:
        """One version, with its files."""
        return self.call("GET", model_target(name, version))

    def change_model(self, name: str, version: str, change: Mapping[str, Any]) -> Dict[str, Any]:
        """Changes what is said of it."""
        return self.call("PATCH", model_target(name, version), change)

    def delete_model(self, name: str, version: str) -> None:
        """Deletes a version, or with "" the name."""
        self.call("DELETE", model_target(name, version))

    def bring_model_file(self, name: str, version: str, path: str, size: int, target: pathlib.Path
                         ) -> None:
        """Writes a file of a version to `target`; it is there whole or not at all."""
        self._bring(model_target(name, version, "/files/" + urllib.parse.quote(path)), path, size,
                    target)

    def nodes(self) -> Dict[str, Any]:
        """The nodes of all computes."""
        return self.call("GET", "/v1/nodes")


class _Patience:
    """Pauses between calls of a service, longer each time, for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._give_up, self._next = time.monotonic() + seconds, 0.05

    def is_over(self) -> bool:
        """Whether the time has passed."""
        return time.monotonic() > self._give_up

    def check(self, error: Exception) -> None:
        """Raises the error, in an except clause, if the service will not come back from it."""
        if not _may_recover(error):
            raise error
        if self.is_over():
            raise ServiceRequestError(f"{error}; it did not come back") from None

    def pause(self) -> None:
        """Waits."""
        time.sleep(self._next)
        self._next = min(self._next * 2, 1)


def _once_it_has_time(ask: Callable[[], T]) -> T:
    """What `ask` gives, which is called again while the service is busy."""
    patience = _Patience(_GIVE_UP_CREATING)
    while True:
        try:
            return ask()
        except _Busy:
            if patience.is_over():
                raise
        patience.pause()


def once_it_is_back(ask: Callable[[], T]) -> T:
    """What `ask` gives, which is called again over a service that comes back."""
    patience = _Patience(_GIVE_UP_FOLLOWING)
    while True:
        try:
            return ask()
        except (AzureError, ValueError) as error:
            patience.check(error)
        patience.pause()


ENDED = ("Completed", "Failed", "Canceled")


def parts_of(path: str) -> List[str]:
    """The parts of a file's path, for a place below a folder. ValidationException: the place would
    be another one."""
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") or pathlib.PurePath(part).name != part
                           for part in parts):
        raise ValidationException(f"the service names a file {path!r}: refused")
    return parts


def page_target(name: str) -> str:
    """The path of a job's page in the portal, which says how to sign in."""
    return f"/portal/jobs/{urllib.parse.quote(name, safe='')}"


def job_target(name: str, rest: str = "") -> str:
    """The path of a job, or of what is below it."""
    return f"/v1/jobs/{urllib.parse.quote(name, safe='')}{rest}"


def model_target(name: str, version: str = "", rest: str = "") -> str:
    """The path of a model, of a version of it, or of what is below it."""
    of_version = f"/versions/{urllib.parse.quote(version, safe='')}" if version else ""
    return f"/v1/models/{urllib.parse.quote(name, safe='')}{of_version}{rest}"
