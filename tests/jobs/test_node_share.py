"""Story: a job asks for a share of a node, gets just that, and shares the node with others."""
import os

import pytest

from conftest import wait_until

CORES = sorted(os.sched_getaffinity(0))
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="sharing a node needs two processors")

# What the kernel says of a rank, then a wait for the test.
LOOK = """
import os, pathlib, sys, time
gate, rank = pathlib.Path(sys.argv[1]), os.environ.get("RANK", "0")
status = pathlib.Path("/proc/self/status").read_text()
cores = next(line for line in status.splitlines() if line.startswith("Cpus_allowed_list")).split()[1]
print("cores", cores, "threads", os.environ["OMP_NUM_THREADS"], "gpus", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
while not gate.exists():
    time.sleep(0.02)
"""


def part(**of_node):
    return {"properties": {"tutti": of_node}}


def looker(write_job, gate, nodes=1, **keys):
    return write_job(f"python3 look.py {gate}", files={"look.py": LOOK}, nodes=nodes, **keys)


def said(service, job, rank=0):
    words = wait_until(lambda: (text := service.log_text(job, rank)) and text.endswith("\n") and text.split(), 30, f"{job} has said what it has")
    return dict(zip(words[::2], words[1::2]))


def part_of(service, job, rank):
    """(node, core) of a rank that has one core, once it has one."""
    parts = wait_until(lambda: service.job(job).get("parts"), 30, f"{job} has its part")
    core, = parts[rank]["cores"]
    return parts[rank]["node"], core


def row(service, name):
    return next(node for node in service.get("/v1/nodes")["nodes"] if node["name"] == name)


def test_two_jobs_share_a_node_and_a_third_waits_also_over_a_restart(start_service, write_job, tmp_path):
    service = start_service(nodes=1, environment={"CUDA_VISIBLE_DEVICES": "4,7"})
    gates = [tmp_path / f"gate-{i}" for i in range(3)]
    rest = len(CORES) - 1  # of one processor
    first = service.submit(looker(write_job, gates[0], resources=part(cpus=1, gpus=1)))
    one = said(service, first)
    service.kill()
    service.start()
    second = service.submit(looker(write_job, gates[1], resources=part(cpus=rest, memory="500MB", gpus=1)))
    other = said(service, second)
    assert one == {"cores": str(CORES[0]), "threads": "1", "gpus": "4"}
    assert other["gpus"] == "7" and other["threads"] == str(rest)
    assert service.job(second)["parts"] == [{"node": "n1", "cores": CORES[1:], "memory_bytes": 500_000_000, "gpus": ["7"]}]
    shown = service.cli("job", "show", second).stdout
    assert f"{rest} core{'s' if rest > 1 else ''}, 500 MB, 1 GPU of each node" in shown and "500 MB, GPU 7)" in shown, shown
    third = service.submit(looker(write_job, gates[2], resources=part(cpus=1, memory="100MB")))
    whole = service.submit(write_job("echo whole"))
    reason = "waits for 1 core and 95 MiB of 1 node: 0 of 1 have them free"
    wait_until(lambda: service.job(third)["reason"].startswith(reason), 20, lambda: service.job(third)["reason"])
    assert row(service, "n1")["used"]["cores"] == len(CORES) and row(service, "n1")["used"]["gpus"] == 2
    assert row(service, "n1")["jobs"] == sorted([first, second])
    line = next(line for line in service.cli("node", "list").stdout.splitlines() if line.startswith("n1 "))
    assert f" {len(CORES)}/{len(CORES)} " in line and " 2/2 " in line, line
    service.kill()
    service.start()
    gates[0].touch()
    assert service.wait(first)["state"] == "Completed"
    assert said(service, third) == {"cores": str(CORES[0]), "threads": "1"}  # and of GPUs none
    assert service.job(whole)["state"] == "Queued"
    for gate in gates[1:]:
        gate.touch()
    for job in (second, third, whole):
        assert service.wait(job)["state"] == "Completed"
    wait_until(lambda: row(service, "n1")["used"] == {"cores": 0, "memory_bytes": 0, "gpus": 0}, 20, "all of the node is free")


def test_a_gang_has_its_part_of_two_nodes_and_others_have_the_rest(start_service, write_job, tmp_path):
    service = start_service(nodes=2, environment={"TUTTI_CORES_PER_NODE": "2"})  # which share them where there are fewer than four
    gate = tmp_path / "gate"
    gang = service.submit(looker(write_job, gate, nodes=2, distribution="pytorch", resources=part(cpus=1)))
    beside = [service.submit(looker(write_job, gate, resources=part(cpus=1))) for _ in range(2)]
    behind = service.submit(write_job("echo behind", resources=part(cpus=1)))
    has = [(job, rank, part_of(service, job, rank)) for job, rank in ((gang, 0), (gang, 1), (beside[0], 0), (beside[1], 0))]
    for job, rank, (node, core) in has:
        assert said(service, job, rank)["cores"] == str(core), (job, node)
    assert {place for _, _, place in has} == {(node["name"], core) for node in service.get("/v1/nodes")["nodes"] for core in node["cores"]}, has
    assert [len(row(service, node)["cores"]) for node in ("n1", "n2")] == [2, 2]
    reason = "waits for 1 core of 1 node: 0 of 2 have them free"
    wait_until(lambda: service.job(behind)["reason"].startswith(reason), 20, lambda: service.job(behind)["reason"])
    gate.touch()
    for job in (gang, *beside, behind):
        assert service.wait(job)["state"] == "Completed"


def test_ranks_share_the_part_out_also_those_of_mpirun(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    gate = tmp_path / "gate"
    gate.touch()
    for kind in ("pytorch", "mpi"):
        job = service.submit(looker(write_job, gate, distribution=kind, processes=2, resources=part(cpus=2)))
        assert service.wait(job)["state"] == "Completed", service.job(job)
        assert [said(service, job, rank)["cores"] for rank in (0, 1)] == [str(core) for core in CORES[:2]], kind


def test_a_gang_of_parts_runs_on_two_nodes(start_service, write_job, tmp_path):
    service = start_service(nodes=2)
    gate = tmp_path / "gate"
    gang = service.submit(looker(write_job, gate, nodes=2, distribution="pytorch", resources=part(cpus=1, memory="200MB")))
    cores = [said(service, gang, rank)["cores"] for rank in (0, 1)]
    assert len(set(cores)) == 2, cores
    assert [entry["node"] for entry in service.job(gang)["parts"]] == ["n1", "n2"]
    gate.touch()
    assert service.wait(gang)["state"] == "Completed"


def test_a_job_over_its_memory_ends_with_the_reason_and_the_one_beside_it_goes_on(start_service, write_job, tmp_path):
    service = start_service(nodes=1)
    gate = tmp_path / "gate"
    beside = service.submit(looker(write_job, gate, resources=part(cpus=1, memory="300MB")))
    said(service, beside)
    greedy = service.submit(write_job("python3 grow.py", resources=part(cpus=1, memory="200MB"), files={"grow.py": """
        import time
        kept = []
        while True:
            kept.append(bytes(range(256)) * (16 << 12))
            time.sleep(0.01)
        """}))
    ended = service.wait(greedy)
    assert ended["state"] == "Failed"
    assert "rank 0 on n1 ran out of memory (the job has 191 MiB of the node: raise resources.properties.tutti.memory)" in ended["reason"], ended["reason"]
    assert service.job(beside)["state"] == "Running"
    gate.touch()
    assert service.wait(beside)["state"] == "Completed"


def test_memory_that_processes_share_counts_too(start_service, write_job):
    service = start_service(nodes=1)
    greedy = service.submit(write_job("python3 grow.py", resources=part(cpus=1, memory="200MB"), files={"grow.py": """
        import mmap, time
        kept = []
        while True:
            kept.append(mmap.mmap(-1, 1 << 20))  # shared, as torch's tensors are
            kept[-1].write(b"x" * (1 << 20))
            time.sleep(0.01)
        """}))
    ended = service.wait(greedy)
    assert ended["state"] == "Failed" and "rank 0 on n1 ran out of memory (the job has 191 MiB of the node" in ended["reason"], ended["reason"]


def test_what_no_node_has_is_refused_with_what_there_is(service, write_job):
    file = write_job("true", resources=part(cpus=5000))
    for command in ("create", "validate"):
        refused = service.cli("job", command, file)
        assert refused.returncode != 0, refused
        assert "resources.properties.tutti.cpus asks for 5000, and the largest node has" in refused.stderr + refused.stdout, refused
        assert "leave resources.properties.tutti out to have whole nodes" in refused.stderr + refused.stdout
