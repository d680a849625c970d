"""Story: a Slurm cluster on bare machines that ssh reaches, over tests/lab/ssh: namespaces that this file makes and removes.
The tests follow each other: one cluster is made, repaired and resized."""
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster_lab import NOTHING, machines_with_power, needs_machines, steps
from conftest import wait_until

pytestmark = needs_machines


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    with machines_with_power(tmp_path_factory) as machines:
        yield machines


def test_bare_machines_become_a_cluster_whose_second_making_changes_nothing(machines):
    planned = steps(machines.create("h1,h2", "--dry-run"))
    assert ("h1", "write slurm.conf, cgroup.conf, gres.conf; start slurmctld") in planned
    assert not machines.home.exists(), "a dry run keeps nothing"
    made = machines.create("h1,h2")
    assert sorted(steps(made)[:-1]) == sorted(planned) and "2 nodes answered" in made
    assert sorted(machines.on("h2", "cd /; srun --nodes=2 hostname").split()) == ["h1", "h2"]
    assert machines.create("h1,h2") == NOTHING.format("2 nodes are")
    machines.wait_for_states(h1="idle", h2="idle")
    assert machines.tutti("exec", "h2", "sh", "-c", 'hostname; echo "$1"', "-", "it's one  word", what="node") == "h2\nit's one  word\n"
    assert machines.tutti("exec", "h1", "sh", "-c", "exit 5", what="node", code=5) == ""
    assert "its nodes are h1, h2" in machines.tutti("exec", "h9", "true", what="node", code=4)


def test_what_was_broken_is_found_with_its_remedy_and_repaired(machines):
    found = machines.well()
    assert re.fullmatch(r"\d+ MB/s and \d+ us to the next node", found["h1", "bandwidth"]["detail"]), found
    machines.on("h2", "tc qdisc add dev eth0 root tbf rate 400mbit burst 64kb latency 50ms")
    links = {}

    def h2_alone_is_blamed():
        """On a busy machine the link of h1 may be slow once, too."""
        links.update({host: check for (host, name), check in machines.checks(code=None).items() if name == "bandwidth"})
        return "others send" in links["h2"]["detail"] and [links[host]["outcome"] for host in ("h1", "h2")] == ["ok", "warning"]
    wait_until(h2_alone_is_blamed, 60, lambda: f"the link of h2 is said to be slow: {links}")
    machines.on("h2", "tc qdisc del dev eth0 root")
    machines.on("h2", "pid=$(cat /run/slurmd.pid); kill $pid; while [ -d /proc/$pid ]; do sleep 0.05; done")
    found = machines.checks(code=1)
    assert found["h1", "ports"]["outcome"] == "failed" and "h2:6818" in found["h1", "ports"]["detail"]
    assert "tutti cluster create" in found["h1", "ports"]["remedy"]
    machines.on("h1", "echo MpiDefault=pmix >>/etc/slurm/slurm.conf")
    machines.on("h1", "scontrol update nodename=h2 state=DRAIN reason='a new disk'")
    repaired = steps(machines.create("h1,h2"))
    assert repaired[-1] == ("h1", "srun hostname") and machines.nodes()["h2"]["reason"] == "a new disk"
    machines.on("h1", "scontrol update nodename=h2 state=RESUME")
    assert ("h1", "write slurm.conf; restart slurmctld") in repaired and ("h2", "start slurmd") in repaired
    assert ("h2", "give it the cluster's munge key") not in repaired


def test_what_would_do_harm_is_refused_before_anything_is_changed(machines):
    machines.on("h4", "echo ClusterName=another >/etc/slurm/slurm.conf")
    assert "h4 has a /etc/slurm/slurm.conf that tutti did not make" in machines.tutti("add-node", "h4", code=7)
    machines.on("h4", "rm /etc/slurm/slurm.conf")
    assert "h2 is a node of this cluster and not among --hosts" in machines.create("h1", code=7)
    unreachable = machines.tutti("add-node", "10.78.0.77", code=3)
    assert "10.78.0.77" in unreachable
    assert machines.create("h2,h1") == NOTHING.format("2 nodes are")


def test_nodes_are_added_and_leave_after_their_job_also_those_that_are_gone(machines):
    assert "2 nodes answered" in machines.tutti("add-node", "h3,h4")
    machines.do("halt", "h4")
    refused = machines.tutti("remove-node", "h3", "--force", code=3)
    assert "nothing was changed; if they are gone for good: `tutti cluster remove-node --force h3 h4`" in refused, refused
    go = machines.power / "go"
    machines.on("h1", f"cd /; sbatch -w h2 -o /dev/null --wrap 'until [ -e {go} ]; do sleep 0.1; done'")
    wait_until(lambda: machines.states()["h2"] == "running", 60, "the job runs")
    wait_until(lambda: machines.states()["h3"] == "idle", 60, "the other one is idle")
    kept = machines.tutti("remove-node", "h2,h3,h4", "--force", "--wait", 0, code=9)
    assert "h2 still runs jobs" in kept and "There is nothing to do" not in kept, kept
    with ThreadPoolExecutor(1) as beside:
        removal = beside.submit(machines.tutti, "remove-node", "h2,h3,h4", "--force")
        try:
            wait_until(lambda: machines.states()["h2"] == "leaving", 60, "the node takes no more jobs")
            assert not removal.done()
            machines.do("halt", "h3")
            found = machines.checks(code=1)
            for host in ("h3", "h4"):
                assert found[host, "reach"]["outcome"] == "failed" and "remove-node --force h3 h4`" in found[host, "reach"]["remedy"], found
            assert found["h1", "clock"]["outcome"] == found["h2", "clock"]["outcome"] == "ok", found
        finally:
            go.touch()
        assert ("h2", "drain it and wait for its jobs") in steps(removal.result())
    machines.wait_for_states(h1="idle")
    assert machines.on("h2", "cat /proc/[0-9]*/comm | grep -cx slurmd || true").strip() == "0"
    assert "h1 is the controller" in machines.tutti("remove-node", "h1", code=2)
