"""The launcher's board: a few values by name over HTTP, by which horovodrun and its workers tell
each other what no collective can (who is to leave, where newcomers find the group, a function to
run and what it returned).

PUT and GET of /SCOPE/KEY; 404 until it is there. Only holders of the job's token are answered.
"""
import os
import urllib.error
import urllib.request


def request(method, url, token="", body=None, timeout=10.0):
    """What a launcher of this job's answers, as bytes; never through a proxy. OSError if it does not,
    urllib.error.HTTPError (one of those) if it refuses."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(url, data=body, method=method, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(asked, timeout=timeout) as response:
        return response.read()


class Board:
    """A client. Every call is one request; OSError if the launcher does not answer."""

    def __init__(self, address, port, token, timeout=10.0):
        self._url, self._token, self._timeout = f"http://{address}:{port}", token, timeout

    @classmethod
    def from_environment(cls, environment=os.environ):
        """The board of the horovodrun that started this process; None if there is none."""
        address, port = environment.get("TUTTI_BOARD", ":").rsplit(":", 1)
        if not address:
            return None
        return cls(address, port, environment.get("TUTTI_JOB_TOKEN", ""))

    def _ask(self, method, path, body=None):
        return request(method, f"{self._url}/{path}", self._token, body, self._timeout)

    def put(self, path, value):
        """`value` is bytes."""
        self._ask("PUT", path, value)

    def get(self, path):
        """Bytes; None if nothing is there yet."""
        try:
            return self._ask("GET", path)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise
