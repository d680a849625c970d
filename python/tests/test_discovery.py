"""Ranks are found from the variables of every launcher, and rank 0's address through what it
offers."""
import concurrent.futures
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

from ranks import LIBRARY, PATIENCE, PYTHON
from tutti.comm import address, discovery, meeting

CONTRACT = {"RANK": "3", "WORLD_SIZE": "8", "NODE_RANK": "1", "MASTER_ADDR": "127.0.0.9",
            "MASTER_PORT": "6105", "TUTTI_NODE_ADDRESS": "127.0.0.10", "TUTTI_JOB_TOKEN": "abc"}
SRUN = {
    "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4", "SLURM_NODEID": "1",
    "SLURM_LOCALID": "0", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "localhost,n[03-04]", "SLURM_JOB_NODELIST": "n[01-09]"
}


def test_a_process_without_a_launcher_is_a_group_of_one():
    place = discovery.place_in({"PATH": "/bin"})
    assert (place.rank, place.size, place.launcher) == (0, 1, "alone")


def test_the_contract_of_a_job_value_by_value():
    place = discovery.place_in(CONTRACT)
    assert place == discovery.Place(rank=3, size=8, node=1, master_address="127.0.0.9",
                                    master_port=6105, address="127.0.0.10", token="abc",
                                    launcher="tutti")


def test_torchrun_names_the_node_group_rank():
    environment = {**CONTRACT, "GROUP_RANK": "2"}
    del environment["NODE_RANK"], environment["TUTTI_NODE_ADDRESS"]
    place = discovery.place_in(environment)
    assert place.node == 2 and place.address is None


@pytest.mark.parametrize("mpi", [
    {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"},
    {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1", "PMIX_NAMESPACE": "x"},
    {"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": "9"},
])
def test_a_rank_of_mpi_in_a_job_is_on_the_jobs_node(mpi):
    environment = {**mpi, "MASTER_ADDR": "127.0.0.9", "NODE_RANK": "1"}
    assert discovery.place_in({**environment, "TUTTI_NODE_NAME": "n2"}).node == 1
    assert discovery.place_in(environment).node == 0  # somebody else's variable


@pytest.mark.parametrize("changes, words", [
    ({"RANK": "8"}, ["RANK", "8", "7"]),
    ({"RANK": "one"}, ["RANK", "one"]),
    ({"WORLD_SIZE": None}, ["WORLD_SIZE", "not set"]),
    ({"MASTER_ADDR": None}, ["MASTER_ADDR"]),
    ({"MASTER_PORT": "66000"}, ["MASTER_PORT", "66000"]),
    ({"MASTER_ADDR": "no.such.host.invalid"}, ["no.such.host.invalid"]),
])
def test_a_wrong_variable_is_named(changes, words):
    environment = {**CONTRACT, **{key: value for key, value in changes.items() if value}}
    for key, value in changes.items():
        if value is None:
            del environment[key]
    with pytest.raises(ValueError) as caught:
        discovery.place_in(environment)
    for word in words:
        assert word in str(caught.value)


def test_slurms_variables_of_a_launcher_that_srun_started_do_not_count():
    assert discovery.place_in({**SRUN, **CONTRACT}).rank == 3


def test_an_elastic_worker_without_a_rank_is_a_newcomer():
    place = discovery.place_in({"TUTTI_ELASTIC": "1", "TUTTI_GROUP_MEMBERS": "127.0.0.1:9"})
    assert place.newcomer and place.elastic and place.members == "127.0.0.1:9"
    assert not discovery.place_in({"TUTTI_ELASTIC": "1", **CONTRACT}).newcomer


def test_srun_without_pmix_takes_the_first_node_and_a_port_of_the_job():
    place = discovery.place_in(SRUN)
    assert (place.rank, place.size, place.node, place.launcher) == (1, 4, 1, "srun")
    assert place.master_address == "127.0.0.1" and place.master_port == meeting.port_of_job("77.0")
    assert place.token == meeting.token_of_job("77.0") != meeting.token_of_job("77.1")
    assert 20000 <= place.master_port < 32000
    named = discovery.place_in({**SRUN, "MASTER_ADDR": "127.0.0.5", "MASTER_PORT": "7000"})
    assert (named.master_address, named.master_port) == ("127.0.0.5", 7000)


def test_a_batch_script_is_no_task_of_a_step():
    batch = {key: value for key, value in SRUN.items() if "STEP" not in key}
    assert discovery.place_in(batch).size == 1


@pytest.mark.parametrize("nodes, first", [
    ("n1", "n1"), ("n1,n2", "n1"), ("n[03-05,9],m", "n03"), ("gpu[7]", "gpu7"),
    ("rack[1-2]-n[08-09]", "rack1-n08"), ("a-b.example,c", "a-b.example")])
def test_the_first_host_of_slurms_lists(nodes, first):
    assert address.first_host(nodes) == first


def test_an_empty_list_of_nodes_is_refused():
    with pytest.raises(ValueError, match="SLURM_STEP_NODELIST"):
        address.first_host("")


def test_an_interface_gives_this_nodes_address():
    assert address.of_interface({"TUTTI_NETWORK_INTERFACES": "nosuch0,lo"}) == "127.0.0.1"
    with pytest.raises(ValueError, match="nosuch0.*lo"):
        address.of_interface({"TUTTI_NETWORK_INTERFACES": "nosuch0"})
    assert address.of_interface({}) is None


def all_ranks(exchange, size=3):
    """What exchange(rank, choose, patience) gives on every rank, the last begun first."""
    def choose():
        return "127.0.0.1 4242 token"

    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        started = [pool.submit(exchange, rank, choose, 20 * PATIENCE) for rank in reversed(range(size))]
        return [one.result() for one in started]


def test_ranks_meet_through_a_file(tmp_path):
    path = str(tmp_path / "meeting")
    told = all_ranks(lambda *arguments: meeting.through_file(path, *arguments))
    assert told == ["127.0.0.1 4242 token"] * 3
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_rank_0_that_does_not_come_is_said(tmp_path):
    with pytest.raises(TimeoutError, match="rank 0.*0.1 s"):
        meeting.through_file(str(tmp_path / "nothing"), 1, None, 0.1)


class _Store(http.server.BaseHTTPRequestHandler):
    values, tokens = {}, set()

    def do_PUT(self):
        self.tokens.add(self.headers.get("Authorization"))
        self.values[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def do_GET(self):
        value = self.values.get(self.path)
        self.send_response(404 if value is None else 200)
        self.end_headers()
        self.wfile.write(value or b"")

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def store(monkeypatch):
    """The port of an empty store, and a proxy in the environment that answers nobody."""
    monkeypatch.setattr(_Store, "values", {})
    monkeypatch.setattr(_Store, "tokens", set())
    monkeypatch.setattr(urllib.request, "_opener", None)  # which remembers the proxies of before
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_ranks_meet_through_the_store_of_horovods_launchers(store):
    def place(rank):
        return discovery.place_in({
            "HOROVOD_RANK": str(rank), "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_RANK": str(rank),
            "HOROVOD_LOCAL_SIZE": "2", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
            "HOROVOD_GLOO_RENDEZVOUS_PORT": str(store)})

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        second, first = pool.map(place, (1, 0))
    assert (first.rank, second.rank) == (0, 1)
    assert first.master_port == second.master_port and first.token == second.token != ""


@pytest.mark.parametrize("token, header", [("", None), ("5ecre7", "Bearer 5ecre7")])
def test_the_store_is_shown_the_token_if_there_is_one(store, monkeypatch, token, header):
    monkeypatch.setenv("TUTTI_JOB_TOKEN", token)
    meeting.through_store("127.0.0.1", store, 0, lambda: "127.0.0.1 4242 token", 20)
    assert _Store.tokens == {header}


def _serve_pmi(connections):
    """A process manager that speaks PMI 1, for as many processes as there are connections."""
    values, barrier, farewells = {}, threading.Barrier(len(connections)), []

    def serve(connection):
        with connection, connection.makefile("r") as lines:
            for line in lines:
                words = dict(word.split("=", 1) for word in line.split())
                if words["cmd"] == "put":
                    values[words["key"]] = words["value"]
                if words["cmd"] == "barrier_in":
                    barrier.wait(20 * PATIENCE)
                if words["cmd"] == "finalize":
                    farewells.append(connection)
                answer = {
                    "init": "response_to_init pmi_version=1 pmi_subversion=1 rc=0",
                    "get_my_kvsname": "my_kvsname kvsname=kvs_1",
                    "put": "put_result rc=0 msg=success", "barrier_in": "barrier_out",
                    "finalize": "finalize_ack",
                    "get": f"get_result rc=0 msg=success value={values.get(words.get('key'))}"
                }
                connection.sendall(f"cmd={answer[words['cmd']]}\n".encode())

    for connection in connections:
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
    return farewells


def test_ranks_meet_through_pmi():
    """A stand-in for mpiexec, which has to see every rank's farewell: else it kills the others."""
    pairs = [socket.socketpair() for _ in range(3)]
    farewells = _serve_pmi([server for server, _ in pairs])
    told = all_ranks(lambda rank, *rest: meeting.through_pmi(pairs[rank][1].fileno(), rank, *rest))
    assert told == ["127.0.0.1 4242 token"] * 3 and len(farewells) == 3
    environment = {"PMI_RANK": "0", "PMI_SIZE": "1", "PMI_FD": "3"}
    assert discovery.place_in(environment).launcher == "mpiexec"


PLACE = (
    "from tutti.comm import basics, discovery; basics.init(); place = discovery.find_place(); "
    "print('at', place.launcher, basics.rank(), basics.size(), basics.local_rank(), place.master_port)"
)
PMIX = ("import os; from tutti.comm import meeting; "
        f"print(meeting.through_pmix(int(os.environ['OMPI_COMM_WORLD_RANK']), lambda: 'a b c', {20 * PATIENCE}))")


def mpirun(program):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun (openmpi-bin) is not installed")
    # Unbuffered, a line would be several writes, and mpirun mixes those of its ranks.
    environment = {key: value for key, value in os.environ.items()
                   if key not in (*CONTRACT, "PYTHONUNBUFFERED")}
    environment.update(PYTHONPATH=str(PYTHON), TUTTI_COMM_LIBRARY=str(LIBRARY),
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    result = subprocess.run(
        ["mpirun", "--oversubscribe", "-np", "2", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment)
    assert result.returncode == 0, result.stderr
    return sorted(result.stdout.splitlines())


def test_ranks_of_a_real_mpirun_form_a_group():
    first, second = (line.split() for line in mpirun(PLACE))
    assert first[:5] == ["at", "mpirun", "0", "2", "0"]
    assert second[:5] == ["at", "mpirun", "1", "2", "1"] and first[5] == second[5]


def test_ranks_meet_through_the_pmix_of_a_real_mpirun():
    assert mpirun(PMIX) == ["a b c", "a b c"]


def test_a_job_around_mpirun_does_not_count():
    environment = {**CONTRACT, "RANK": "0", "WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0",
                   "OMPI_COMM_WORLD_SIZE": "1", "PMIX_NAMESPACE": "1"}
    assert discovery.place_in(environment).launcher == "mpirun"
    del environment["PMIX_NAMESPACE"]  # as tutti sets them itself
    assert discovery.place_in(environment).launcher == "tutti"
