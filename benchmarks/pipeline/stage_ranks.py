"""The ranks of a pipeline on this machine, a stage on each of its cores in turn, a thread each.

    ranks.py COUNT COMMAND…

is a contender as train_step/contender.py has it: every line of standard input goes to each rank, and the answer is the greatest
of theirs. What rank 0 says of itself before "ready" is passed on.
"""
import os
import socket
import subprocess
import sys


class Failed(RuntimeError):
    """A rank that has ended with an error."""


def cores():
    return sorted(os.sched_getaffinity(0))


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(count, command, environment=None, pins=True, **options):
    """Processes by rank, each on a core if it pins them. They end with this one."""
    port, found = _free_port(), []
    for rank in range(count):
        variables = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": port, "OMP_NUM_THREADS": 1, "GLOO_SOCKET_IFNAME": "lo"}
        core = cores()[rank % len(cores())]
        pin = ["taskset", "-c", str(core)] if pins else []
        found.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *pin, *map(str, command)],
                                      stdout=subprocess.PIPE, text=True,
                                      env=os.environ | (environment or {}) | {name: str(value) for name, value in variables.items()},
                                      **options))
    return found


def outputs(count, command, environment=None):
    """What each rank has printed in the end."""
    ranks, said = start(count, command, environment), []
    for rank in ranks:
        said.append(rank.communicate()[0])
        if rank.returncode:  # the others wait for it
            for other in ranks:
                other.kill()
    if any(rank.returncode for rank in ranks):
        raise Failed(f"{' '.join(map(str, command))}: a rank has failed; its own words stand above")
    return said


def _until_ready(rank):
    words = []
    for line in rank.stdout:
        if line.strip() == "ready":
            return words
        words.append(line.rstrip())
    sys.exit("a rank has ended before it was ready")


def main():
    ranks = start(int(sys.argv[1]), sys.argv[2:], stdin=subprocess.PIPE)
    words = [_until_ready(rank) for rank in ranks]
    print(*words[0], "ready", sep="\n", flush=True)
    for line in sys.stdin:
        for rank in ranks:
            rank.stdin.write(line)
            rank.stdin.flush()
        print(max(float(rank.stdout.readline()) for rank in ranks), flush=True)


if __name__ == "__main__":
    main()
