"""horovodrun: starts ranks, carries their output, names who failed, and leaves nothing behind."""
import asyncio
import errno
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

from ranks import LIBRARY, PATIENCE, PYTHON
from tutti.runner import command, elastic, hosts, master
from tutti.runner.settings import Settings
from tutti.runner.worker import Ssh

SHOW = ("import json, os; print(json.dumps({k: v for k, v in os.environ.items() "
        "if k.startswith(('HOROVOD', 'TUTTI', 'MASTER')) or 'RANK' in k or 'SIZE' in k}))")


def start(*arguments, **environment):
    """horovodrun as a process."""
    variables = {**os.environ, "PYTHONPATH": str(PYTHON), "TUTTI_COMM_LIBRARY": str(LIBRARY),
                 **environment}
    return subprocess.Popen([sys.executable, "-m", "tutti.runner", *map(str, arguments)],
                            stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            text=True,
                            env=variables)


def run(*arguments, timeout=60, **environment):
    process = start(*arguments, **environment)
    process.out, process.err = process.communicate(timeout=timeout)
    return process


def wait_until(condition, what, seconds=20):
    seconds *= PATIENCE
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds} s still not: {what}"
        time.sleep(0.01)


_naps = itertools.count(1)


@pytest.fixture
def nap():
    """Seconds to sleep, longer than any test, that stand among no other process's arguments."""
    return f"4000.{os.getpid():08}{next(_naps):04}"


def processes_with(text):
    """The pids of living processes that have this text among their arguments."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if text in (entry / "cmdline").read_bytes().decode(errors="replace") and state != "Z":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("text, slots", [
    ("a", {"a": 1}), ("a:2", {"a": 2}), ("a:2,b:3", {"a": 2, "b": 3}), ("a:1, a:2", {"a": 3}),
    ("10.0.0.1:4", {"10.0.0.1": 4}), ("[::1]:2", {"::1": 2})])
def test_hosts_are_parsed(text, slots):
    assert hosts.parse_hosts(text) == slots


@pytest.mark.parametrize("text", ["", "a:", "a:x", "a:1,,b:1", "a b", "-F/tmp/x:1", "a:1,-v"])
def test_wrong_hosts_are_refused(text):
    with pytest.raises(ValueError, match="HOST"):
        hosts.parse_hosts(text)


def test_a_host_file_is_parsed_and_its_wrong_line_named(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# ours\na slots=2\nb:3\nc  # one\n\n")
    assert hosts.parse_host_file(file) == {"a": 2, "b": 3, "c": 1}
    file.write_text("a slots=2\nb slots=two\n")
    with pytest.raises(ValueError, match="hosts:2"):
        hosts.parse_host_file(file)


def test_ranks_go_host_after_host():
    slots = hosts.assign({"a": 2, "b": 3}, 4, 4)
    assert [(s.host, s.rank, s.local_rank, s.local_size, s.node) for s in slots] == [
        ("a", 0, 0, 2, 0), ("a", 1, 1, 2, 0), ("b", 2, 0, 2, 1), ("b", 3, 1, 2, 1)]
    uneven = hosts.assign({"a": 1, "b": 2}, 3, 3)
    assert [(s.cross_rank, s.cross_size) for s in uneven] == [(0, 2), (1, 2), (0, 1)]
    with pytest.raises(ValueError, match="5 processes.*a:2, b:1"):
        hosts.assign({"a": 2, "b": 1}, 5)


def test_every_rank_gets_its_variables_and_its_lines_a_prefix():
    result = run("-np", 3, "-H", "localhost:2,127.0.0.2:1", "--fusion-threshold-mb", 32,
                 "--cycle-time-ms", 2.5, "--timeline-filename", "/tmp/x.json", "--gloo",
                 sys.executable, "-c", SHOW)
    assert result.returncode == 0, result.err
    shown = {}
    for line in result.out.splitlines():
        head, text = line.split(":", 1)
        assert head in ("[1,0]<stdout>", "[1,1]<stdout>", "[1,2]<stdout>")
        shown[int(head[3])] = json.loads(text)
    for rank, own in shown.items():
        expected = {
            "RANK": rank, "WORLD_SIZE": 3, "LOCAL_RANK": rank % 2, "HOROVOD_RANK": rank,
            "HOROVOD_SIZE": 3, "HOROVOD_LOCAL_SIZE": [2, 2, 1][rank], "NODE_RANK": rank // 2,
            "HOROVOD_CROSS_SIZE": [2, 1, 2][rank], "OMPI_COMM_WORLD_RANK": rank,
            "HOROVOD_FUSION_THRESHOLD": 32 << 20, "HOROVOD_CYCLE_TIME": 2.5,
            "HOROVOD_TIMELINE": "/tmp/x.json", "MASTER_ADDR": "127.0.0.1",
            "TUTTI_NODE_ADDRESS": ["127.0.0.1", "127.0.0.1", "127.0.0.2"][rank]
        }
        assert {name: own.get(name) for name in expected} == {k: str(v) for k, v in expected.items()}
    assert len({own["MASTER_PORT"] for own in shown.values()}) == 1
    assert len({own["TUTTI_JOB_TOKEN"] for own in shown.values()}) == 1


def test_an_interface_chooses_the_addresses():
    result = run("-np", 1, "--network-interface", "nosuch0,lo", sys.executable, "-c", SHOW)
    assert result.returncode == 0, result.err
    own = json.loads(result.out.split(":", 1)[1])
    assert own["MASTER_ADDR"] == "127.0.0.1" and own["TUTTI_NETWORK_INTERFACES"] == "nosuch0,lo"
    assert "TUTTI_NODE_ADDRESS" not in own
    result = run("-np", 1, "--network-interface", "nosuch0", "true")
    assert result.returncode == 1 and "no network interface nosuch0" in result.err


def test_a_rank_that_fails_ends_the_others_and_is_named(tmp_path, nap):
    began = time.monotonic()
    result = run("-np", 3, "-H", "localhost:1,127.0.0.2:2", "sh", "-c",
                 f"[ $RANK = 1 ] && exit 7; echo x >{tmp_path}/$RANK; exec sleep {nap}")
    assert result.returncode == 7
    assert "rank 1 on 127.0.0.2 failed with exit code 7; the other ranks were ended" in result.err
    assert time.monotonic() - began < 20 * PATIENCE and not processes_with(nap)


def test_a_killed_rank_is_named_by_its_signal():
    result = run("-np", 2, "sh", "-c", "[ $RANK = 0 ] && kill -9 $$; exec sleep 4322")
    assert result.returncode == 128 + 9
    assert "rank 0 failed with signal 9 (SIGKILL)" in result.err


def test_a_command_that_is_not_there_is_named():
    result = run("-np", 1, "no-such-command-here")
    assert result.returncode == 127 and "no-such-command-here could not be started" in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_ranks_in_order(number, tmp_path, nap):
    process = start(
        "-np", 2, "sh", "-c",
        f"trap 'echo in order; exit 0' TERM; echo x >{tmp_path}/$RANK; sleep {nap} & wait")
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "both ranks run")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number and out.count("in order") == 2
    assert number.name in err and not processes_with(nap)


def test_a_killed_launcher_leaves_nothing_behind(tmp_path, nap):
    process = start("-np", 2, "sh", "-c",
                    f"setsid sleep {nap} & echo x >{tmp_path}/$RANK; exec sleep {nap}")
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "both ranks run")
    process.kill()
    process.communicate(timeout=20)
    wait_until(lambda: not processes_with(nap), "all processes have ended")


def test_ranks_that_do_not_listen_are_killed(tmp_path, nap):
    process = start("-np", 1, "sh", "-c",
                    f"trap '' TERM; echo x >{tmp_path}/0; while :; do sleep 0.1; done; # {nap}")
    wait_until(lambda: list(tmp_path.iterdir()), "the rank runs")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)  # a second one: at once
    process.communicate(timeout=20)
    assert not processes_with(nap)


def test_output_goes_to_files_too(tmp_path):
    result = run("-np", 2, "--output-filename", tmp_path / "logs", "sh", "-c",
                 "printf 'a\\nhalf'; echo b >&2")
    assert result.returncode == 0
    assert sorted(result.out.splitlines()) == ["[1,0]<stdout>:a", "[1,0]<stdout>:half",
                                               "[1,1]<stdout>:a", "[1,1]<stdout>:half"]
    assert (tmp_path / "logs/rank.1/stdout").read_text() == "a\nhalf"
    assert (tmp_path / "logs/rank.0/stderr").read_text() == "b\n"


FAKE_SSH = """#!/bin/sh
# ssh HOST COMMAND without a network: the last two arguments.
while [ $# -gt 2 ]; do shift; done
echo "$1" >>"$FAKE_SSH_LOG"
[ "$1" = far1 ] || [ "$1" = far2 ] || exit 255
unset TUTTI_COMM_LIBRARY RANK
exec sh -c "$2"
"""


@pytest.fixture
def fake_ssh(tmp_path, monkeypatch):
    """Hosts far1 and far2, which lead here, and a resolver that knows them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(FAKE_SSH)
    (folder / "ssh").chmod(0o755)
    (folder / "sitecustomize.py").write_text(
        "import socket\n"
        "real = socket.getaddrinfo\n"
        "def known(host, *rest, **more):\n"
        "    return real('192.0.2.77' if host in ('far1', 'far2') else host, *rest, **more)\n"
        "socket.getaddrinfo = known\n")
    return {"PATH": f"{folder}:{os.environ['PATH']}", "FAKE_SSH_LOG": str(tmp_path / "ssh.log"),
            "PYTHONPATH": f"{PYTHON}:{folder}"}


def test_other_hosts_are_reached_by_ssh(fake_ssh):
    result = run("-np", 2, "-H", "localhost:1,far1:1", "sh", "-c",
                 "echo $RANK on $HOROVOD_HOSTNAME in $PWD", **fake_ssh)
    assert result.returncode == 0, result.err
    assert sorted(result.out.splitlines()) == [
        f"[1,0]<stdout>:0 on localhost in {os.getcwd()}",
        f"[1,1]<stdout>:1 on far1 in {os.getcwd()}"]
    assert pathlib.Path(fake_ssh["FAKE_SSH_LOG"]).read_text() == "far1\n"


def test_ssh_takes_no_host_for_an_option():
    words = Ssh(port=22).command("far1")
    assert words[words.index("far1") - 1] == "--" and len(words) == words.index("far1") + 2


def test_rank_0_may_be_on_another_host_which_is_asked_for_a_port(fake_ssh):
    program = "from tutti import comm; comm.init(); print(comm.rank(), comm.size(), comm.cross_size())"
    result = run("-np", 2, "-H", "far1:1,localhost:1", "--network-interface", "lo", sys.executable,
                 "-c", program, **fake_ssh)
    assert result.returncode == 0, result.err
    assert sorted(result.out.splitlines()) == ["[1,0]<stdout>:0 2 2", "[1,1]<stdout>:1 2 2"]


def test_a_port_for_rank_0_is_given_to_nobody_else_meanwhile():
    port = master.Port("127.0.0.1")
    try:
        with socket.socket() as other:
            with pytest.raises(OSError) as refused:
                other.bind(("127.0.0.1", port.number))
            assert refused.value.errno == errno.EADDRINUSE
        with socket.socket() as rank_0:
            rank_0.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            rank_0.bind(("127.0.0.1", port.number))
            rank_0.listen()
            with socket.create_connection(("127.0.0.1", port.number)) as rank_1:
                assert rank_1.getpeername() == ("127.0.0.1", port.number)
    finally:
        port.close()


def test_a_host_of_rank_0_that_cannot_be_asked_is_named(fake_ssh):
    (pathlib.Path(fake_ssh["PATH"].split(":")[0]) / "ssh").write_text("#!/bin/sh\nexit 255\n")
    result = run("-np", 1, "-H", "far1:1", "true", **fake_ssh)
    assert result.returncode == 1 and "far1 cannot be rank 0's" in result.err


def test_the_token_is_not_seen_among_processes(fake_ssh, tmp_path):
    process = start("-np",
                    1,
                    "-H",
                    "localhost:1",
                    "sh",
                    "-c",
                    f"echo x >{tmp_path}/up; exec sleep 4326",
                    TUTTI_JOB_TOKEN="5ecre7",
                    **fake_ssh)
    wait_until(lambda: (tmp_path / "up").exists(), "the rank runs")
    assert not processes_with("5ecre7")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)


def test_a_host_that_ssh_does_not_reach_is_named(fake_ssh):
    (pathlib.Path(fake_ssh["PATH"].split(":")[0]) / "ssh").write_text("#!/bin/sh\nexit 255\n")
    result = run("-np", 2, "-H", "localhost:1,far2:1", "sleep", "60", **fake_ssh)
    assert result.returncode == 255 and "far2" in result.err and "ssh" in result.err


@pytest.mark.parametrize("arguments, words", [
    ([], ["-np"]),
    (["-np", "2"], ["command"]),
    (["-np", "0", "true"], ["-np"]),
    (["-np", "3", "-H", "localhost:2", "true"], ["3 processes", "localhost:2"]),
    (["-np", "1", "-H", "a:1", "--hostfile", "b", "true"], ["-H", "--hostfile"]),
    (["-np", "1", "--hostfile", "/no/such/file", "true"], ["/no/such/file"]),
    (["-np", "4", "--min-np", "2", "--max-np", "3", "true"], ["--max-np 3"]),
])
def test_wrong_options_are_said(arguments, words, capfd):
    code = command.main(arguments, "horovodrun")
    assert code in (1, 2)
    for word in words:
        assert word in capfd.readouterr().err or len(words) > 1


def test_a_config_file_fills_in_what_the_command_line_did_not_say(tmp_path):
    pytest.importorskip("yaml")
    file = tmp_path / "config.yaml"
    file.write_text("params:\n  fusion_threshold_mb: 8\n  cycle_time_ms: 4\n"
                    "stall_check:\n  enabled: false\nautotune:\n  enabled: true\n")
    arguments = command._parser("horovodrun").parse_args(
        ["-np", "1", "--config-file", str(file), "--cycle-time-ms", "9", "true"])
    knobs = command.settings_of(arguments).knobs
    assert knobs == {"HOROVOD_FUSION_THRESHOLD": str(8 << 20), "HOROVOD_CYCLE_TIME": "9.0",
                     "HOROVOD_STALL_CHECK_DISABLE": "1", "HOROVOD_AUTOTUNE": "1"}


def test_check_build_says_what_there_is():
    result = run("--check-build")
    assert result.returncode == 0 and "[X] shared memory" in result.out and "[ ] MPI" in result.out


def test_a_function_runs_on_all_ranks_and_its_results_come_back(tmp_path):
    (tmp_path / "work.py").write_text(
        "import os\nimport horovod.common.basics as hvd\n"
        "def f(a, b=0):\n    hvd.init()\n    return hvd.rank(), hvd.size(), a + b\n")
    program = "import horovod, work; print(horovod.run(work.f, args=(1,), kwargs={'b': 2}, num_proc=2))"
    result = subprocess.run([sys.executable, "-c", program],
                            capture_output=True,
                            text=True,
                            timeout=60,
                            cwd=tmp_path,
                            env={
                                **os.environ, "PYTHONPATH": f"{PYTHON}:{tmp_path}",
                                "TUTTI_COMM_LIBRARY": str(LIBRARY)
                            })
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith("[(0, 2, 3), (1, 2, 3)]")


def test_a_function_that_fails_is_an_error_of_run(tmp_path):
    (tmp_path / "work.py").write_text("def f():\n    raise KeyError('this one')\n")
    program = ("import horovod, work\ntry:\n    horovod.run(work.f, num_proc=2)\n"
               "except RuntimeError as error:\n    print('said:', error)")
    result = subprocess.run([sys.executable, "-c", program],
                            capture_output=True,
                            text=True,
                            timeout=60,
                            cwd=tmp_path,
                            env={
                                **os.environ, "PYTHONPATH": f"{PYTHON}:{tmp_path}",
                                "TUTTI_COMM_LIBRARY": str(LIBRARY)
                            })
    assert "KeyError: 'this one'" in result.stderr
    assert "said: a rank of f failed with exit code 1" in result.stdout


def hanging_script(tmp_path, answers):
    """A discovery script that answers so many times, and then hangs: a process with "/never" among
    its arguments, below tmp_path."""
    script = tmp_path / "discover"
    os.mkfifo(tmp_path / "never")
    script.write_text(f"#!/bin/sh\necho x >>{tmp_path}/asked\n"
                      f"[ $(wc -l <{tmp_path}/asked) -le {answers} ] || cat {tmp_path}/never\n"
                      "echo localhost:1\n")
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("ranks, answers", [(1, 0), (2, 1), (1, 2)])
def test_a_signal_ends_a_run_whose_discovery_script_hangs(tmp_path, nap, ranks, answers):
    """At first, while slots are awaited, and while a rank runs."""
    process = start("-np", ranks, "--host-discovery-script", hanging_script(tmp_path, answers),
                    "sleep", nap)
    wait_until(lambda: processes_with(f"{tmp_path}/never"), "the script hangs")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM and "SIGTERM" in err
    assert not processes_with(f"{tmp_path}/never") and not processes_with(nap)


def test_a_signal_ends_an_elastic_run_whose_first_host_does_not_answer(fake_ssh, tmp_path):
    ssh = pathlib.Path(fake_ssh["PATH"].split(":")[0]) / "ssh"
    ssh.write_text(f"#!/bin/sh\necho x >{tmp_path}/asked\nexec cat >/dev/null\n")
    process = start("-np", 1, "--min-np", 1, "-H", "far1:1", "true", **fake_ssh)
    wait_until(lambda: (tmp_path / "asked").exists(), "the host is asked")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_discovery_script_that_hangs_is_given_up(tmp_path):
    found = elastic.Hosts(Settings(discovery_script=f"{hanging_script(tmp_path, 0)}"), patience=0.2)
    with pytest.raises(ValueError, match="discover did not end within 0.2 s"):
        asyncio.run(found.look())
    assert not processes_with(f"{tmp_path}/never")


def test_a_run_that_ends_as_its_discovery_script_does_ends(monkeypatch):
    async def look():
        looking = asyncio.ensure_future(elastic._printed_by("discover", 60))

        class Process:
            returncode = 0

            async def communicate(self):
                looking.cancel()  # and then it is done, before who waits for it runs again
                return b"localhost:2", None

        async def start(*_arguments, **_options):
            return Process()

        monkeypatch.setattr(asyncio, "create_subprocess_shell", start)
        await asyncio.wait({looking}, timeout=20 * PATIENCE)
        return looking.cancelled()

    assert asyncio.run(look()), "the cancellation was lost, and the loop that looks goes on"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_barred_host_returns_after_its_cooldown_which_doubles():
    clock = Clock()
    found = elastic.Hosts(Settings(hosts={"a": 1, "b": 2}, cooldown=(10, 100)), clock)
    found.bar("a")
    assert found.usable() == {"b": 2}
    clock.now = 21
    assert found.usable() == {"a": 1, "b": 2}
    found.bar("a")
    clock.now = 40
    assert found.usable() == {"b": 2}
    clock.now = 60
    assert found.usable() == {"a": 1, "b": 2}


def test_a_barred_host_without_cooldown_stays_out():
    clock = Clock()
    found = elastic.Hosts(Settings(hosts={"a": 1}), clock)
    found.bar("a")
    clock.now = 1e9
    assert found.usable() == {}


def test_hosts_that_were_known_keep_their_order():
    found = elastic.Hosts(Settings(slots_per_host=3))
    found.found = found.parse("b:1\nc\n")
    assert list(found.parse("a:2\nc\nb:4\n").items()) == [("b", 4), ("c", 3), ("a", 2)]


def test_a_run_whose_workers_have_all_left_ends_with_a_word(capfd):
    async def decide():
        driver = elastic.Driver(Settings(hosts={"a": 1}, least=1), {}, None)
        driver._generation = 1
        return await driver._decide()

    assert asyncio.run(decide()) == 1
    assert "no worker is left" in capfd.readouterr().err
