"""Story: machines as they are in most places, with systemd and cgroups, become a cluster: its daemons are systemd's to keep up,
and its jobs are held to what they were given."""
import pytest

import needs
from cluster_lab import LAB, NOTHING, Machines, steps
from conftest import wait_until

pytestmark = needs.of_program([LAB, "can", "systemd"], "a lab of machines with systemd")


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    machines = Machines(tmp_path_factory.mktemp("systemd"))
    try:
        machines.do("start-systemd", 2)
        yield machines
    finally:
        machines.do("stop")


def unit(machines, host, daemon):
    """Returns whether the daemon's unit comes with the machine, and whether it runs."""
    return tuple(machines.on(host, f"systemctl is-enabled {daemon} || true; systemctl is-active {daemon} || true").split())


def test_a_cluster_of_such_machines_lives_and_ends_by_their_systemd(machines):
    assert machines.on("h1", "cat /proc/1/comm") == "systemd\n"
    made = machines.create("h1,h2")
    assert "2 nodes answered" in made and "after a reboot" not in made and "no cgroups hold a job" not in made, made
    daemons = [("h1", "munge"), ("h2", "munge"), ("h1", "slurmctld"), ("h1", "slurmd"), ("h2", "slurmd")]
    assert {unit(machines, *daemon) for daemon in daemons} == {("enabled", "active")}
    assert machines.create("h1,h2") == NOTHING.format("2 nodes are")

    own = machines.on("h1", "cd /; srun -N2 --ntasks-per-node=1 -c1 --mem=100M grep Cpus_allowed_list /proc/self/status").split()
    assert len(own) == 4 and all(cores.isdigit() for cores in own[1::2]), f"one core each: {own}"
    said = machines.on("h1", "cd /; srun -n1 --mem=60M python3 -c 'bytearray(300 << 20); print(1)' 2>&1 || true")
    assert "oom-kill" in said and "1\n" not in said.splitlines(), said

    machines.on("h2", "kill -9 $(systemctl show -p MainPID --value slurmd)")
    wait_until(lambda: unit(machines, "h2", "slurmd") == ("enabled", "active"), 30, "systemd starts it again")
    machines.on("h1", "systemctl stop slurmctld munge")
    repaired = steps(machines.create("h1,h2"))
    assert ("h1", "start munge") in repaired and ("h1", "start slurmctld") in repaired, repaired
    machines.well()

    left = steps(machines.tutti("remove-node", "h2"))
    assert ("h2", "end its daemons, remove its configuration") in left and unit(machines, "h2", "slurmd") == ("disabled", "inactive")
    machines.tutti("delete")
    assert {unit(machines, "h1", daemon) for daemon in ("munge", "slurmctld", "slurmd")} == {("disabled", "inactive")}
    assert machines.on("h1", "ls /etc/slurm /etc/systemd/system/slurmd.service.d; systemctl --failed --no-legend").split() == [
        "/etc/slurm:", "/etc/systemd/system/slurmd.service.d:"]
