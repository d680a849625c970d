#!/usr/bin/env python3
"""Stands for what `az storage container create` and `generate-sas` do in Azure: makes containers in an account of Azurite, and
writes a datastore's file with a signature for each. The account's key goes no further than this program.

    account.py ENDPOINT FOLDER NAME=RIGHTS…    makes the containers NAME, and writes FOLDER/NAME.yml for `tutti datastore create`

The signature is for its one container, for a week, and for RIGHTS: rl to read and list, racwdl to write and delete, too.
"""
import base64
import datetime
import email.utils
import hashlib
import hmac
import os
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request

ACCOUNT = "devstoreaccount1"  # Azurite's own, whose key is published with it
KEY = base64.b64decode("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==")
VERSION = "2021-08-06"


def signed(text):
    return base64.b64encode(hmac.new(KEY, text.encode(), hashlib.sha256).digest()).decode()


def make_container(endpoint, name):
    """Makes it, unless it is there; signed as Azure's "Shared Key" says."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": VERSION}
    own = "".join(f"{key}:{value}\n" for key, value in sorted(headers.items()))
    text = "PUT" + "\n" * 12 + own + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    request = urllib.request.Request(f"{endpoint}/{ACCOUNT}/{name}?restype=container", method="PUT",
                                     headers={**headers, "Authorization": f"SharedKey {ACCOUNT}:{signed(text)}"})
    try:
        urllib.request.urlopen(request, timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise


def signature(name, rights):
    """A service SAS of the container."""
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=7)
    fields = {"sp": rights, "st": "", "se": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "resource": f"/blob/{ACCOUNT}/{name}", "si": "", "sip": "",
              "spr": "https", "sv": VERSION, "sr": "c"}
    sig = signed("\n".join([*fields.values(), *[""] * 7]))
    told = {key: value for key, value in fields.items() if value and key != "resource"} | {"sig": sig}
    return urllib.parse.urlencode(told, quote_via=urllib.parse.quote)


def main(endpoint, folder, *containers):
    for name, rights in (container.split("=") for container in containers):
        make_container(endpoint, name)
        file = pathlib.Path(folder) / f"{name}.yml"
        file.touch(mode=0o600)
        file.write_text("$schema: https://azuremlschemas.azureedge.net/latest/azureBlob.schema.json\n"
                        f"name: {name}\ntype: azure_blob\naccount_name: {ACCOUNT}\ncontainer_name: {name}\n"
                        f"endpoint: {endpoint}/{ACCOUNT}\ncredentials:\n  sas_token: \"{signature(name, rights)}\"\n")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"account.py: {sys.argv[1]}: {error}")
