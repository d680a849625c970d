"""Story: what a service keeps no longer goes, by what site.yml says; what is in use and what nobody allowed to go stays."""
import json
import os
import time

from conftest import wait_until

DAY = 86400


def age(path, days):
    """As if it was last used so long ago."""
    then = time.time() - days * DAY
    os.utime(path, (then, then))


def prune(service, *options):
    result = service.cli("prune", "-o", "json", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_what_is_long_unused_goes_and_the_job_says_so(service, write_job, tmp_path):
    job = service.submit(write_job("echo printed; mkdir -p outputs; echo 42 >outputs/answer"))
    assert service.wait(job)["state"] == "Completed"
    cache = service.home / "data" / "0123456789abcdef01234567"
    cache.mkdir(parents=True)
    (cache / "train.csv").write_bytes(b"x" * 5000)
    age(cache, 40)

    told = service.cli("prune", "--dry-run")
    assert "unused for 40 days (retention.data.age: 30 days)" in told.stdout and "5.00 kB would be removed" in told.stdout, told
    assert cache.exists()
    assert [one["name"] for one in prune(service)["removed"]] == [cache.name]
    assert not cache.exists()
    assert prune(service)["removed"] == [], "users' files stay where the site does not say otherwise"

    age(service.home / "jobs" / job, 1)
    (service.home / "site.yml").write_text("retention: {logs: {age: 0h}, results: {age: 0h}}\n")
    assert {(one["kind"], one["name"]) for one in prune(service, "--dry-run")["removed"]} == {("logs", job), ("results", job)}
    assert service.cli("job", "stream", job).stdout.count("printed") == 1
    assert len(prune(service)["removed"]) == 2
    assert {gone["kind"] for gone in service.get(f"/v1/jobs/{job}")["removed"]} == {"logs", "results"}
    today = time.strftime("%Y-%m-%d", time.gmtime())
    shown = service.cli("job", "show", job).stdout
    assert f"logs, on {today} by the site's retention" in shown and f"results, on {today}" in shown, shown
    assert f"removed: logs, on {today}" in service.cli("job", "stream", job).stderr
    downloaded = service.cli("job", "download", job, cwd=tmp_path)
    assert f"removed: results, on {today}" in downloaded.stderr, downloaded
    assert [path.name for path in (service.home / "jobs").iterdir() if not path.name.startswith(".")] == [job]


def test_what_a_running_job_needs_stays(service, write_job, tmp_path):
    (service.home / "site.yml").write_text("retention: {snapshots: {age: 0h}, results: {age: 0h}}\n")
    first = service.submit(write_job("mkdir -p outputs; echo 42 >outputs/answer"))
    assert service.wait(first)["state"] == "Completed"
    code, go = tmp_path / "code", tmp_path / "go"
    code.mkdir()
    (code / "run.sh").write_text(f"until [ -e {go} ]; do sleep 0.05; done; cat $1/answer\n")
    file = tmp_path / "next.yml"
    file.write_text(f"command: bash run.sh ${{{{inputs.x}}}}\ncode: {code}\nenvironment: host\ncompute: local\n"
                    f"inputs:\n  x: {{type: uri_folder, path: azureml://jobs/{first}/outputs/artifacts/paths/outputs}}\n")
    second = service.submit(file)
    wait_until(lambda: service.get(f"/v1/jobs/{second}")["state"] == "Running", 30, "it runs")
    snapshot, = (service.home / "snapshots").glob("sha256-*")
    age(snapshot, 1)
    age(service.home / "jobs" / first, 1)
    assert prune(service)["removed"] == []
    go.touch()
    assert service.wait(second)["state"] == "Completed"
    assert "42" in service.cli("job", "stream", second).stdout
    age(snapshot, 1)
    gone = {(one["kind"], one["name"]) for one in prune(service)["removed"]}
    assert ("snapshots", snapshot.name.replace("-", ":")) in gone and ("results", first) in gone, gone
    assert not snapshot.exists()


def test_a_wrong_site_file_removes_nothing(service):
    (service.home / "site.yml").write_text("retention: {data: {age: soon}}\n")
    result = service.cli("prune")
    assert result.returncode != 0 and 'retention.data.age: "soon" is no time' in result.stderr, result
