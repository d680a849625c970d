"""A server of S3's kind that costs little: versitygw over a folder, whose files are the objects."""
import contextlib

from conftest import free_port
from stores import S3, running


@contextlib.contextmanager
def s3_gateway(tools, folder, host="127.0.0.1", inside=()):
    """The store, with `folder` where its buckets lie. `tools`: from tools/storage-peers; `inside`: the words that have a command run elsewhere."""
    port = free_port()
    url = f"http://{host}:{port}"
    buckets = folder / "buckets"
    buckets.mkdir()
    program = tools / "versitygw"
    if not program.exists():
        raise SystemExit("versitygw is not here: tools/storage-peers builds it where Go is installed")
    store = S3(url)
    keys = store.credentials
    command = [*inside, program, "--access", keys["access_key_id"], "--secret", keys["secret_access_key"], "--port", f"{host}:{port}", "--quiet",
               "posix", buckets]
    with running(command, url, folder / "versitygw.log"):
        store.folder = buckets
        yield store
