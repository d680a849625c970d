"""Story: of a job that wrote 200,000 points the page shows a single spike and three NaNs, smooths, zooms to each point, folds 153 charts and keeps them as a file."""
from conftest import wait_until
from needs import needs_portal
from portal_story import browse

pytestmark = needs_portal

POINTS, SPIKE, NANS = 200_000, 123_456, (50_000, 50_001, 150_000)

TRAIN = f"""
import json, math, os, random, time
random.seed(1)
began = time.time()
with open(os.environ["TUTTI_METRICS_FILE"], "a") as metrics:
    def report(name, step, value):
        print(json.dumps({{"event": "metric", "name": name, "step": step, "time": began + step / 1000, "value": value}}), file=metrics)
    for step in range(1, {POINTS} + 1):
        value = 2 * math.exp(-step / 60000) + 0.2 * random.random()
        report("train/loss", step, math.nan if step in {NANS} else 50 if step == {SPIKE} else value)
    for epoch in range(1, 11):
        report("evaluation/accuracy", epoch, 1 - 1 / epoch)
        report("evaluation/loss", epoch, math.inf if epoch == 10 else 1 / epoch)
        for part, count in (("gradients", 72), ("weights", 78)):
            for layer in range(count):
                report(f"{{part}}/layer_{{layer:02}}", {POINTS} // 10 * epoch, layer + random.random())
"""


def test_charts_of_many_points_and_metrics(service, write_job, tmp_path):
    job = service.submit(write_job("python3 train.py", files={"train.py": TRAIN}, display_name="charts"))
    assert service.wait(job, 120)["state"] == "Completed"
    print(browse(service, "charts", tmp_path, seconds=180, JOB=job, POINTS=POINTS, SPIKE=SPIKE, NAN=NANS[2]))


# Reports its step as its loss: those up to 900, and those up to 1,100 once the gate is open.
LIVE = """
import json, os, pathlib, sys, time
gate = pathlib.Path(sys.argv[1])
with open(os.environ["TUTTI_METRICS_FILE"], "a", buffering=1) as metrics:
    for step in range(1, 1101):
        print(json.dumps({"step": step, "loss": step}), file=metrics)
        while step == 900 and not gate.exists():
            time.sleep(0.05)
    time.sleep(600)
"""


def test_a_zoomed_chart_follows_a_job_that_runs(service, write_job, tmp_path):
    gate = tmp_path / "gate"
    job = service.submit(write_job(f"python3 live.py {gate}", files={"live.py": LIVE}))
    wait_until(lambda: [metric["count"] for metric in service.get(f"/v1/jobs/{job}/metrics")["metrics"]] == [900], 60, "what it reports at first")
    browse(service, "charts-live", tmp_path, JOB=job, GATE=gate)
