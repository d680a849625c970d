"""Story: what the ranks of a job use and report is seen while it runs and after it has ended, by rank and by node, also over a restart of the service."""
import datetime
import json
import re
import subprocess

from conftest import BIN, wait_until

# Rank 1 computes and takes memory; rank 0 waits, and both end by the gate.
USE = """
import os, pathlib, sys, time
gate, rank = pathlib.Path(sys.argv[1]), int(os.environ["RANK"])
taken = bytearray(os.urandom(1 << 20)) * 64 if rank == 1 else b""
print("begun", flush=True)
while not gate.exists():
    if rank == 1:
        for i in range(100_000):
            pass
    else:
        time.sleep(0.05)
"""
COLUMNS = {"cpu", "memory", "disk_read", "disk_write", "cpu_wait"}


def usage(service, job, query=""):
    return service.get(f"/v1/jobs/{job}/usage{query}")


def last(values):
    return next((value for value in reversed(values) if value is not None), None)


def ranks_of(seen, resolution):
    return {rank["rank"]: rank for node in seen["nodes"] for rank in node[resolution]["ranks"]}


def test_what_each_rank_uses_is_seen_while_the_job_runs_and_after_it(start_service, write_job, tmp_path):
    service = start_service(nodes=2)
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"python3 use.py {gate}", files={"use.py": USE}, nodes=2))

    def is_seen():
        ranks = ranks_of(usage(service, job), "recent")
        if set(ranks) != {0, 1} or not all(ranks[rank]["cpu"] for rank in ranks):
            return None
        busy, idle = (last(ranks[rank]["cpu"]) for rank in (1, 0))
        if busy is None or idle is None or busy < 0.1 or busy < 2 * idle:
            return None
        return (last(ranks[1]["memory"]) or 0) > 64e6 and ranks  # it computes as it begins, too
    ranks = wait_until(is_seen, 60, "the service knows which rank computes")
    assert all(COLUMNS < set(rank) for rank in ranks.values())
    assert last(ranks[0]["memory"]) < 64e6
    seen = usage(service, job)
    assert seen["live"] and [node["name"] for node in seen["nodes"]] == ["n1", "n2"]
    for node in seen["nodes"]:
        assert last(node["recent"]["memory_left"]) > 0
        assert len(node["recent"]["time"]) == len(node["recent"]["cpu"])

    # The command shows the same, one rank alone too, and as JSON.
    shown = service.cli("job", "metrics", job).stdout
    assert "n1" in shown and "rank 0" in shown and "rank 1" in shown and "Memory" in shown
    shown = service.cli("job", "show", job).stdout
    assert re.search(r"\nUse\n  cpu +now ~?[\d.]+, mean [\d.]+ of \d+ cores?, peak [\d.]+\n  memory +now .*, mean .* MB, peak .* MB\n", shown), shown
    one = json.loads(service.cli("job", "metrics", job, "--rank", "1", "-o", "json").stdout)
    assert [node["name"] for node in one["nodes"]] == ["n2"] and set(ranks_of(one, "recent")) == {1}
    nothing = service.cli("job", "metrics", job, "--rank", "2", check=False)
    assert nothing.returncode != 0 and "rank 2" in nothing.stderr

    # A service that dies loses a minute at most, and no job.
    def saved():
        return sorted(path.name for path in (service.home / "jobs" / job / "usage").glob("*.whole"))
    wait_until(lambda: saved() == ["node-0.whole", "node-1.whole"], 90, "spans of both nodes are on the disk")
    killed = datetime.datetime.now(datetime.timezone.utc)
    service.kill()
    service.start()
    wait_until(is_seen, 60, "the next service knows it, too")
    for node in usage(service, job)["nodes"]:
        assert datetime.datetime.fromisoformat(node["whole"]["time"][0].replace("Z", "+00:00")) < killed
        assert node["whole"]["samples"][0] >= 1

    gate.touch()
    service.wait_for_state(job, "Completed")
    ended = usage(service, job, "?points=10")
    assert not ended["live"] and set(ranks_of(ended, "whole")) == {0, 1}
    assert max(cpu for cpu in ranks_of(ended, "whole")[1]["cpu"] if cpu is not None) > 0.1  # in the last span others may have had the processors
    assert all(len(node["whole"]["time"]) <= 10 for node in ended["nodes"])
    assert "rank 1" in service.cli("job", "metrics", job).stdout
    shown = service.cli("job", "show", job).stdout
    assert re.search(r"\nUse\n  cpu +mean [\d.]+ of \d+ cores?, peak [\d.]+\n", shown), shown
    assert not any(file["path"].startswith("usage") for file in service.get(f"/v1/jobs/{job}/files")["files"])


# A stand-in for NVIDIA's library, of two GPUs (src/platform/launch/usage/fake_nvml.cpp).
NVML = BIN.parent / "src/platform/launch/libtutti_fake_nvml.so"
GPUS = "uuid=GPU-1 busy={} used=3072 total=81920 watts=300 celsius=61\nuuid=GPU-2 busy=50 used=1024 total=81920 celsius=72\n"


def test_what_the_gpus_of_a_job_do_is_seen_while_it_runs_and_after_it(start_service, write_job, tmp_path):
    devices = tmp_path / "devices"
    devices.write_text(GPUS.format(100))
    service = start_service(environment={"CUDA_VISIBLE_DEVICES": "0,1", "TUTTI_CORES_PER_NODE": "2", "TUTTI_NVML_LIBRARY": str(NVML),
                                         "TUTTI_FAKE_NVML": str(devices)})
    gate = tmp_path / "gate"
    share = {"properties": {"tutti": {"cpus": 1, "gpus": 1}}}
    waiting = f"until [ -e {gate} ]; do sleep 0.1; done"
    one, other = (service.submit(write_job(waiting, resources=share)) for _ in range(2))

    def seen(job, column, resolution="recent"):
        nodes = usage(service, job)["nodes"]
        return last(nodes[0][resolution].get(column, [])) if nodes else None
    wait_until(lambda: (seen(one, "gpu_use"), seen(other, "gpu_use")) == (1, 0.5), 60, "each job's own GPU is seen")
    assert (seen(one, "gpu_memory"), seen(one, "gpu_memory_total")) == (3072 << 20, 81920 << 20)
    assert (seen(one, "gpu_power"), seen(one, "gpu_temperature")) == (300, 61)
    assert (seen(other, "gpu_power"), seen(other, "gpu_temperature")) == (None, 72)  # this one does not tell its power
    shown = service.cli("job", "metrics", one).stdout
    assert all(word in shown for word in ("GPUs", "1.00", "3.22 GB of 85.9 GB", "300 W", "61 °C")), shown
    wait_until(lambda: "1.50 of 2" in service.cli("top", "--once").stdout, 20, lambda: service.cli("top", "--once").stdout)

    devices.write_text(GPUS.format(25))
    wait_until(lambda: seen(one, "gpu_use") == 0.25, 60, "the next values follow")
    gate.touch()
    for job in (one, other):
        service.wait_for_state(job, "Completed")
    assert 0.25 <= seen(one, "gpu_use", "whole") <= 1 and seen(other, "gpu_temperature", "whole") == 72
    assert " busy, peak 1.00" in service.cli("job", "show", one).stdout


# Rank 0 reports by the metrics file and, as MLflow's client does, in its file store.
REPORTS = """
import json, os, pathlib, sys, time
def report(**line):
    with open(os.environ["TUTTI_METRICS_FILE"], "a") as file:
        print(json.dumps(line), file=file)
run = pathlib.Path(os.environ["MLFLOW_TRACKING_URI"].removeprefix("file://"), "0", "a1")
(run / "metrics").mkdir(parents=True, exist_ok=True)
(run / "meta.yaml").write_text("run_name: one\\nstart_time: 1\\n")
for step in range(3):
    report(event="step", step=step, loss=1 / (step + 1), time=time.time())
    with open(run / "metrics" / "f1", "a") as file:
        print(int(time.time() * 1000) + 1, 0.25 * step, step, file=file)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
report(event="step", step=3, loss=0.125, time=time.time())
"""


def test_what_a_job_reports_is_seen_while_it_runs_and_after_it(start_service, write_job, tmp_path):
    service = start_service()
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"python3 report.py {gate}", files={"report.py": REPORTS}))

    def reported():
        metrics = {metric["name"]: metric for metric in service.get(f"/v1/jobs/{job}/metrics?newest=9")["metrics"]}
        return {"loss", "f1"} <= set(metrics) and metrics["f1"]["step"] == 2 and metrics
    metrics = wait_until(reported, 60, "the service knows what the job has reported")
    assert metrics["loss"]["newest"]["value"] == [1, 0.5, 1 / 3] and metrics["loss"]["run"] is None
    assert metrics["f1"]["last"] == 0.5 and metrics["f1"]["run"] == "a1" and metrics["f1"]["max"] == 0.5
    shown = service.cli("job", "show", job).stdout
    assert "f1 0.5" in shown and "loss 0.333333" in shown, shown
    shown = service.cli("job", "metrics", job).stdout
    assert [line.split()[:2] for line in shown.splitlines()[1:3]] == [["loss", "0.333333"], ["f1", "0.5"]], shown

    follow = [service.program, "job", "metrics", job, "--follow"]
    with subprocess.Popen(follow, env=service.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as follower:
        first = [follower.stdout.readline() for step in range(3)]
        gate.touch()
        rest = follower.communicate()[0].splitlines(keepends=True)
    assert follower.returncode == 0
    words = [line.strip().split("  ")[1:] for line in first + rest]
    assert words == [["step 0", "loss 1", "f1 0"], ["step 1", "loss 0.5", "f1 0.25"], ["step 2", "loss 0.333333", "f1 0.5"],
                     ["step 3", "loss 0.125"]], words
    assert "{" not in service.cli("job", "stream", job).stdout, "reports are no output"
    seen = json.loads(service.cli("job", "metrics", job, "-o", "json").stdout)
    assert [(metric["name"], metric["count"]) for metric in seen["metrics"]] == [("loss", 4), ("f1", 3)]
    assert "loss 0.125" in service.cli("job", "show", job).stdout, "a metrics file alone is shown, too"


# A metric whose run is long, has one spike and diverges at its end; json writes NaN and Infinity as bare words.
DIVERGES = """
import json, math, os
with open(os.environ["TUTTI_METRICS_FILE"], "a") as file:
    for step in range(50_000):
        print(json.dumps({"step": step, "loss": 50 if step == 34_567 else 1, "time": 1e9 + step, "lr": 0.1}), file=file)
    for step, loss in enumerate((math.nan, 3.0, math.inf, -math.inf), 50_000):
        print(json.dumps({"step": step, "loss": loss, "time": 1e9 + step}), file=file)
"""


def test_a_spike_and_what_is_not_finite_are_seen_among_many_points(start_service, write_job):
    service = start_service()
    job = service.submit(write_job("python3 diverges.py", files={"diverges.py": DIVERGES}))
    service.wait_for_state(job, "Completed")

    def loss(query):
        [metric] = service.get(f"/v1/jobs/{job}/metrics?metric=loss&{query}")["metrics"]
        return metric
    whole = loss("points=100&newest=4")
    course = whole["course"]
    assert (whole["count"], whole["not_finite"], whole["last"], whole["last_not_finite"], whole["first"]) == (50_004, 3, None, "-inf", 0)
    assert (max(course["high"]), max(course["value"][:-1]), course["value"][-1]) == (50, 1, None), "the spike is in no span's last point"
    assert sum(course["not_finite"]) == 3 and len({len(column) for column in course.values()}) == 1
    assert whole["newest"] == {"step": [50_000, 50_001, 50_002, 50_003], "time": [1e9 + step for step in whole["newest"]["step"]],
                               "value": [None, 3, None, None], "not_finite": ["nan", None, "inf", "-inf"]}
    at = course["high"].index(50)
    assert course["step"][at - 1] < 34_567 <= course["step"][at]
    # As one zooms in on it, down to its neighbours.
    for half, span in ((5_000, 128), (500, 16), (20, 1)):
        part = loss(f"points=100&from={34_567 - half}&to={34_567 + half}")
        spikes = [step for step, high in zip(part["course"]["step"], part["course"]["high"]) if high == 50]
        assert len(spikes) == 1 and 34_567 <= spikes[0] < 34_567 + part["span"] == 34_567 + span, (half, part)
    assert part["course"]["step"] == list(range(34_546, 34_589)) and part["first"] == 34_546
    seconds = loss("by=time&from=1000034566&to=1000034568")["course"]
    assert seconds["value"] == [1, 1, 50, 1, 1]

    shown = service.cli("job", "metrics", job).stdout.splitlines()
    assert [line.split()[:5] for line in shown[:2]] == [["Metric", "Last", "Min", "Max", "Not"], ["loss", "-inf", "1", "50", "3"]], shown
    assert "3 (first at 50000)" in shown[1], shown
    followed = service.cli("job", "metrics", job, "--follow").stdout.splitlines()
    assert [line.rpartition("  ")[2] for line in followed[-4:]] == ["loss nan", "loss 3", "loss inf", "loss -inf"], followed
    assert "loss -inf at step 50003" in service.cli("job", "show", job).stdout
    refused = service.cli("job", "metrics", job, "--rank", "3", "-o", "json", check=False)
    assert refused.returncode != 0


def test_a_service_that_is_told_so_has_nothing_measured(start_service, write_job):
    service = start_service(arguments=["--no-usage"])
    job = service.submit(write_job("sleep 3"))  # the first sample would be made after one
    service.wait_for_state(job, "Completed")
    assert usage(service, job)["nodes"] == []
    assert "nothing is known" in service.cli("job", "metrics", job).stdout
