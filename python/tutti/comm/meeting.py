"""How rank 0 tells the others where it listens, through what the launcher offers.

Every exchange is called by all ranks as exchange(rank, choose, patience): rank 0 calls choose() and
tells its text, the others return that text; `patience` are seconds. TimeoutError says who did not
come, Unusable that this way is not open here.
"""
import ctypes
import hashlib
import os
import socket
import threading
import time
import urllib.error

from tutti.comm import board

KEY = "tutti-master"
_PAUSE = 0.02  # seconds between two looks


class Unusable(Exception):
    """The launcher does not offer this."""


def patience(environment):
    """Seconds for rank 0 to come: HOROVOD_START_TIMEOUT, else a minute."""
    return float(environment.get("HOROVOD_START_TIMEOUT") or 60)


def port_of_job(job):
    """A port below the ephemeral ones, the same on all ranks of a job, others for other jobs
    (mostly)."""
    return 20000 + int.from_bytes(hashlib.sha256(job.encode()).digest()[:4], "big") % 12000


def token_of_job(job):
    """Keeps ranks of different jobs apart. It is no secret: who needs one sets TUTTI_JOB_TOKEN."""
    return hashlib.sha256(f"tutti {os.getuid()} {job}".encode()).hexdigest()[:32]


def _await(look, seconds, where):
    deadline = time.monotonic() + seconds
    while True:
        text = look()
        if text:
            return text
        if time.monotonic() > deadline:
            raise TimeoutError(f"rank 0 did not tell {where} within {seconds:g} s where it listens")
        time.sleep(_PAUSE)


def through_file(path, rank, choose, patience):
    """A file that only this job sees; for ranks of one node."""
    if rank == 0:
        text = choose()
        partial = f"{path}.{os.getpid()}"
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        os.replace(partial, path)
        return text

    def look():
        try:
            with open(path) as file:
                return file.read()
        except FileNotFoundError:
            return None

    return _await(look, patience, f"in {path}")


def through_store(host, port, rank, choose, patience):
    """The key-value store over HTTP of Horovod's launchers: PUT and GET of /SCOPE/KEY, 404 until it
    is there."""
    url = f"http://{host}:{port}/{KEY}/address"
    token = os.environ.get("TUTTI_JOB_TOKEN", "")

    def ask(method, body=None):
        return board.request(method, url, token, body, patience).decode()

    def look():
        try:
            return ask("GET")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    try:
        if rank == 0:
            text = choose()
            ask("PUT", text.encode())
            return text
        return _await(look, patience, f"the store at {host}:{port}")
    except urllib.error.URLError as error:
        raise Unusable(f"the launcher's store at {host}:{port} does not answer: {error}") from error


def through_pmi(descriptor, rank, choose, patience):
    """PMI 1, lines of text over the connection that mpiexec (MPICH, Intel MPI) has opened for this
    process. MPI cannot be begun in it afterwards."""
    stream = socket.socket(fileno=os.dup(descriptor))
    stream.settimeout(patience)
    lines = stream.makefile("r")

    def ask(command, answer):
        stream.sendall(f"cmd={command}\n".encode())
        words = dict(word.split("=", 1) for word in lines.readline().split() if "=" in word)
        if words.get("cmd") != answer or words.get("rc", "0") != "0":
            raise Unusable(f"PMI answers {words} to {command.split()[0]}")
        return words

    try:
        ask("init pmi_version=1 pmi_subversion=1", "response_to_init")
        space = ask("get_my_kvsname", "my_kvsname")["kvsname"]
        if rank == 0:
            ask(f"put kvsname={space} key={KEY} value={choose().replace(' ', '|')}", "put_result")
        ask("barrier_in", "barrier_out")
        told = ask(f"get kvsname={space} key={KEY}", "get_result")["value"].replace("|", " ")
        ask("finalize", "finalize_ack")  # else mpiexec takes the process's end for a failure
        return told
    except socket.timeout as error:
        raise TimeoutError(
            f"not all ranks came to mpiexec's barrier within {patience:g} s") from error
    except (OSError, KeyError) as error:
        raise Unusable(f"the connection to mpiexec (PMI_FD) does not answer: {error}") from error
    finally:
        lines.close()
        stream.close()


class _Process(ctypes.Structure):  # pmix_proc_t
    _fields_ = [("namespace", ctypes.c_char * 256), ("rank", ctypes.c_uint32)]


class _Value(ctypes.Structure):  # pmix_value_t: a type and a union of at most 24 bytes
    _fields_ = [("type", ctypes.c_uint16), ("text", ctypes.c_char_p), ("rest", ctypes.c_char * 48)]


_PMIX_STRING = 3
_PMIX_GLOBAL = 3


def through_pmix(rank, choose, patience):
    """PMIx, which mpirun and `srun --mpi=pmix` serve."""
    try:
        library = ctypes.CDLL("libpmix.so.2")
    except OSError as error:
        raise Unusable("libpmix.so.2 is not installed") from error
    told = []
    failed = []

    def exchange():
        try:
            told.append(_exchange_by_pmix(library, rank, choose))
        except Unusable as error:
            failed.append(error)

    # It knows no deadline of its own.
    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(patience)
    if failed:
        raise failed[0]
    if not told:
        raise TimeoutError(f"not all ranks came to PMIx's fence within {patience:g} s")
    return told[0]


def _exchange_by_pmix(library, rank, choose):
    def must(status, what):
        if status != 0:
            raise Unusable(f"{what} failed with PMIx status {status}")

    me = _Process()
    must(library.PMIx_Init(ctypes.byref(me), None, ctypes.c_size_t(0)), "PMIx_Init")
    try:
        if rank == 0:
            value = _Value(type=_PMIX_STRING, text=choose().encode())
            must(library.PMIx_Put(ctypes.c_uint8(_PMIX_GLOBAL), KEY.encode(), ctypes.byref(value)),
                 "PMIx_Put")
            must(library.PMIx_Commit(), "PMIx_Commit")
        must(library.PMIx_Fence(None, ctypes.c_size_t(0), None, ctypes.c_size_t(0)), "PMIx_Fence")
        zero = _Process(namespace=me.namespace, rank=0)
        answer = ctypes.POINTER(_Value)()
        must(
            library.PMIx_Get(ctypes.byref(zero), KEY.encode(), None, ctypes.c_size_t(0),
                             ctypes.byref(answer)), "PMIx_Get")
        return answer.contents.text.decode()
    finally:
        library.PMIx_Finalize(None, ctypes.c_size_t(0))
