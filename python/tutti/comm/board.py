"""The launcher's board: a few values by name over HTTP, by which horovodrun and its workers tell
each other what no collective can (who is to leave, where newcomers find the group, a function to
run and what it returned).

PUT and GET of /SCOPE/KEY; 404 until it is there. Only holders of the job's token are answered.
"""
import os
import urllib.error
import urllib.request


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
        request = urllib.request.Request(f"{self._url}/{path}", data=body, method=method,
                                         headers={"Authorization": f"Bearer {self._token}"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=self._timeout) as response:
            return response.read()

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
