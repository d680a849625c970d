"""Story: a team brings pipelines and sweeps written for Azure ML. The files in flows/ are of the kinds that are found in
Azure/azureml-examples: inline steps, component files, registered components, pipelines in pipelines, sweeps alone and as steps."""
import json
import shutil
import signal

import pytest

from conftest import ROOT, TERMINAL, Service, wait_until


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A service with two nodes; .flows is a copy of azure_flows, and site.yml says what its names mean."""
    folder = tmp_path_factory.mktemp("flows")
    shutil.copytree(ROOT / "tests/azure/flows", folder / "flows")
    (folder / "home").mkdir()
    (folder / "home/site.yml").write_text(
        "computes: {cpu-cluster: local}\n"
        "environments: {sklearn-*: host, acpt-pytorch-*: host}\n"
        f"components: {{my_score: {folder}/flows/components/score.yml}}\n")
    service = Service(folder / "home")
    service.start()
    service.flows = folder / "flows"
    yield service
    service.stop()


def run(site, file, *arguments, code=0):
    """Runs a job file to its end; the job with its children, and what was said on standard error."""
    result = site.cli("run", file, "-o", "json", *arguments, timeout=200)
    assert result.returncode == code, (result.stdout, result.stderr)
    return site.get(f"/v1/jobs/{json.loads(result.stdout)['id']}"), result.stderr


def text_of(site, job, path):
    with site.request(f"/v1/jobs/{job}/files/{path}") as response:
        return response.read().decode()


def child(job, name):
    return next(child for child in job["children"] if child["step"] == name)


def test_steps_inline_with_their_data_flow(site):
    job, _ = run(site, site.flows / "abc.yml")
    assert job["state"] == "Completed" and job["type"] == "pipeline" and job["world_size"] == 0
    assert site.log_text(f"{job['id']}.a", 0) == "hello hello world\n"
    assert site.log_text(f"{job['id']}.c", 0) == "world\n"
    assert job["id"].startswith("letters-") and child(job, "b")["id"] == f"{job['id']}.b"
    assert all(listed["parent"] is None for listed in site.get("/v1/jobs")["jobs"])
    shown = site.cli("job", "show", "letters").stdout
    assert "├─ a" in shown and "└─ c" in shown and "all 3 steps completed" in shown, shown
    assert "world" in site.cli("job", "stream", "letters.c", "--no-prefix").stdout


def test_default_artifacts_and_an_output_file_of_the_pipeline(site, tmp_path):
    job, _ = run(site, site.flows / "artifacts.yml")
    assert text_of(site, job["id"], "outputs/greeting/greeting.txt") == "world\n"
    assert site.cli("job", "download", job["id"], "-d", tmp_path / "results").returncode == 0
    assert (tmp_path / "results/outputs/greeting/greeting.txt").read_text() == "world\n"


def test_components_by_path_and_by_name(site):
    job, remarks = run(site, site.flows / "train_score.yml")
    assert text_of(site, job["id"], "outputs/job_model/model.txt") == "3 rows, 20 epochs, rate 1.8, time-based\n"
    assert site.log_text(f"{job['id']}.train_job", 0) == "fresh\n"
    assert site.log_text(f"{job['id']}.score_job", 0) == "3 rows, 20 epochs, rate 1.8, time-based\n"
    assert '"services" has no effect' in remarks and '"default_datastore" has no effect' in remarks


def test_pipelines_in_a_pipeline(site):
    job, _ = run(site, site.flows / "nested/pipeline.yml")
    assert text_of(site, job["id"], "outputs/best/both.txt") == (
        "4 rows, 2 epochs, rate 0.1, time-based\n4 rows, 2 epochs, rate 0.01, time-based\n")
    first = child(job, "first")
    assert first["type"] == "pipeline" and first["children"][0]["id"] == f"{job['id']}.first.train_job"
    assert "│  └─ train_job" in site.cli("job", "show", job["id"]).stdout


def test_a_job_that_is_one_pipeline_component(site):
    job, _ = run(site, site.flows / "nested/one_component.yml")
    assert job["type"] == "pipeline" and [step["step"] for step in job["children"]] == ["make", "train"]
    assert text_of(site, job["id"], "outputs/model/model.txt") == "3 rows, 2 epochs, rate 0.2, time-based\n"


def test_a_distributed_step_on_two_nodes(site):
    job, _ = run(site, site.flows / "distributed.yml")
    lines = sorted(site.log_text(f"{job['id']}.ranks", rank) for rank in range(4))
    assert lines == [f"rank {r} local {r % 2} node {r // 2} of 4\n" for r in range(4)]


def test_unchanged_steps_are_reused(site):
    first, _ = run(site, site.flows / "train_score.yml", "--set", "inputs.job_epochs=7")
    second, _ = run(site, site.flows / "train_score.yml", "--set", "inputs.job_epochs=7")
    assert {step["reused_from"] for step in second["children"]} == {f"{first['id']}.train_job", f"{first['id']}.score_job"}
    assert "2 of them reused" in second["reason"]
    assert text_of(site, second["id"], "outputs/job_model/model.txt").startswith("3 rows, 7 epochs")
    (site.flows / "data/rows.txt").write_text("1 2 3 4 5\n")
    third, _ = run(site, site.flows / "train_score.yml", "--set", "inputs.job_epochs=7")
    assert [step["reused_from"] for step in third["children"]] == [None, None]
    assert text_of(site, third["id"], "outputs/job_model/model.txt").startswith("5 rows")
    forced, _ = run(site, site.flows / "train_score.yml", "--set", "inputs.job_epochs=7", "--set", "settings.force_rerun=true")
    assert [step["reused_from"] for step in forced["children"]] == [None, None]
    assert site.cli("job", "delete", first["id"]).returncode == 0
    assert site.log_text(f"{second['id']}.train_job", 0) == "fresh\n"


def test_a_step_whose_results_were_written_to_runs_anew(site, tmp_path):
    """An input of the mode direct is the folder itself: what one job appends there no other may get as unchanged."""
    file = tmp_path / "job.yml"
    for word in ("one", "two", "three"):
        file.write_text("""type: pipeline
jobs:
  make:
    command: echo made > ${{outputs.o}}/f
    outputs: {o: }
  use:
    command: echo WORD >> ${{inputs.i}}/f; cat ${{inputs.i}}/f
    inputs: {i: {path: "${{parent.jobs.make.outputs.o}}", mode: direct}}
""".replace("WORD", word))
        job, _ = run(site, file)
        assert child(job, "make")["reused_from"] is None
        assert site.log_text(f"{job['id']}.use", 0) == f"made\n{word}\n"


def test_a_failed_step_is_named_by_its_pipeline(site, tmp_path):
    file = tmp_path / "job.yml"
    file.write_text("type: pipeline\njobs:\n"
                    "  good: {command: echo x, outputs: {o: }}\n"
                    "  bad: {command: \"python3 -c 'raise KeyError(5)'\"}\n"
                    "  after: {command: echo y, inputs: {i: '${{parent.jobs.good.outputs.o}}'}}\n"
                    "settings: {continue_on_step_failure: true}\n")
    job, _ = run(site, file, code=1)
    assert job["state"] == "Failed"
    assert job["reason"].startswith("step bad failed: ") and "KeyError: 5" in job["reason"], job["reason"]
    assert child(job, "after")["state"] == "Completed"


def test_a_cancel_of_the_pipeline_ends_its_steps(site, tmp_path):
    file = tmp_path / "job.yml"
    file.write_text("type: pipeline\nname: long\njobs:\n  wait: {command: sleep 600}\n  also: {command: sleep 600}\n"
                    "  then: {command: echo, inputs: {i: '${{parent.jobs.wait.outputs.o}}'}}\n".replace(
                        "wait: {command: sleep 600}", "wait: {command: sleep 600, outputs: {o: }}"))
    assert site.cli("run", file, "--detach").returncode == 0
    wait_until(lambda: [step["state"] for step in site.get("/v1/jobs/long")["children"]][:2] == ["Running", "Running"], 60,
               "both steps run")
    assert site.cli("job", "cancel", "long", "--wait").returncode == 0
    job = site.get("/v1/jobs/long")
    assert job["state"] == "Canceled"
    assert [step["state"] for step in job["children"]] == ["Canceled", "Canceled", "NotStarted"]
    assert "not started" in site.cli("job", "show", "long").stdout


def test_what_is_wrong_is_said_before_anything_is_sent(site, tmp_path):
    file = tmp_path / "job.yml"
    file.write_text("type: pipeline\njobs:\n  a: {command: x, inputs: {i: '${{parent.jobs.b.outputs.o}}'}}\n"
                    "  c: {component: ./gone.yml}\n  d: {command: python3 none.py, code: ./nowhere}\n")
    result = site.cli("run", file)
    assert result.returncode == 2
    assert "job.yml:3: step \"a\" takes input \"i\" from the step \"b\"" in result.stderr, result.stderr
    assert "job.yml:4: component:" in result.stderr


def test_what_a_step_gives_to_a_component_is_told_with_the_steps_line(site, tmp_path):
    (tmp_path / "part.yml").write_text("command: cat ${{inputs.d}}\ninputs: {d: {type: uri_file}}\nenvironment: host\n")
    file = tmp_path / "job.yml"
    file.write_text("type: pipeline\n\n\njobs:\n  a:\n    component: ./part.yml\n"
                    "    inputs: {d: {type: uri_file, path: INPUT}}\n    resources:\n      instance_count: 9\n")
    text = file.read_text()
    for path, faults in (("./gone", ['job.yml:7: input "d": ']),
                         (site.flows / "data/rows.txt", ["job.yml:9: instance_count is 9, but the cluster has 2 nodes"]),
                         ("http://127.0.0.1:1/x", ['job.yml:7: input "d": http://127.0.0.1:1/x cannot be had', "job.yml:9: "])):
        file.write_text(text.replace("INPUT", str(path)))
        result = site.cli("run", file)
        assert result.returncode == 2 and all(fault in result.stderr for fault in faults), result.stderr
        assert "part.yml:" not in result.stderr, result.stderr


def test_a_sweep_by_itself(site):
    job, _ = run(site, site.flows / "sweep.yml")
    trials = job["children"]
    assert len(trials) == 4 and job["state"] == "Completed"
    best = min(trials, key=lambda trial: trial["metric"])
    assert best["best"] and job["reason"].startswith(f"best {best['step']} with value_of_c"), job["reason"]
    assert all(0.1 <= float(trial["values"]["C"]) <= 1 for trial in trials)
    assert len({trial["values"]["C"] for trial in trials}) == 4
    assert f"B: {best['values']['B']} C: {best['values']['C']}\n" in site.log_text(best["id"], 0)
    shown = site.cli("job", "show", job["id"]).stdout
    assert "Trials" in shown and "best  B=" in shown, shown


def test_a_sweep_as_a_step_gives_its_best_trials_outputs(site):
    job, _ = run(site, site.flows / "sweep_step.yml")
    sweep = child(job, "sweep_step")
    assert [trial["values"]["C"] for trial in sweep["children"]] == ["0.9", "0.3", "0.6"]
    assert sweep["reason"].startswith("best trial-2 with value_of_c 0.3")
    assert site.log_text(f"{job['id']}.predict_step", 0).startswith("0.3")
    again, _ = run(site, site.flows / "sweep_step.yml")
    assert child(again, "sweep_step")["reused_from"] == sweep["id"]


def test_a_sweep_of_more_trials_than_a_screen_holds(site, tmp_path):
    """Trial 47 is the best; 110 has failed."""
    count = 120
    file = tmp_path / "job.yml"
    command = r"""x=${{search_space.x}}; echo '{\"loss\": '$(( (x - 47) * (x - 47) ))'}' >> $TUTTI_METRICS_FILE; test $x != 110"""
    file.write_text(f"type: sweep\nname: many\ntrial: {{command: \"{command}\", environment: host}}\nsampling_algorithm: grid\n"
                    f"search_space: {{x: {{type: choice, values: {list(range(1, count + 1))}}}}}\n"
                    "objective: {goal: minimize, primary_metric: loss}\n")
    job, _ = run(site, file)
    assert job["reason"].startswith(f"best trial-47 with loss 0; {count - 1} of {count} trials completed, 1 failed"), job["reason"]
    assert len(job["children"]) == 100 and job["trials"]["count"] == count and job["trials"]["states"] == {"Completed": count - 1, "Failed": 1}
    assert [trial["step"] for trial in job["trials"]["best"][:3]] == ["trial-47", "trial-46", "trial-48"]
    shown = site.cli("job", "show", "many").stdout
    assert f"{count}: {count - 1} completed, 1 failed" in shown and "─ trial-110" in shown and "─ trial-100" not in shown, shown
    assert f"{count - 11} others: tutti job show many --all" in shown, shown
    site.kill(signal.SIGKILL)
    site.start()
    whole = site.cli("job", "show", "many", "--all").stdout
    assert all(f"─ trial-{number} " in whole for number in range(1, count + 1)), whole
    trials = json.loads(site.cli("job", "show", "many", "--all", "-o", "json").stdout)["children"]
    assert [trial["metric"] for trial in trials] == [(x - 47) ** 2 for x in range(1, count + 1)]


def test_a_pipeline_goes_on_after_its_service_was_killed(site, tmp_path):
    file = tmp_path / "job.yml"
    file.write_text("type: pipeline\nname: survivor\njobs:\n"
                    f"  a: {{command: 'while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo a > ${{{{outputs.o}}}}/a', outputs: {{o: }}}}\n"
                    "  b: {command: 'cat ${{inputs.i}}/a', inputs: {i: '${{parent.jobs.a.outputs.o}}'}}\n")
    assert site.cli("run", file, "--detach").returncode == 0
    wait_until(lambda: child(site.get("/v1/jobs/survivor"), "a")["state"] == "Running", 60, "the first step runs")
    site.kill(signal.SIGKILL)
    (tmp_path / "go").touch()
    site.start()
    job = wait_until(lambda: (job := site.get("/v1/jobs/survivor"))["state"] in TERMINAL and job, 60, "the pipeline ends")
    assert job["state"] == "Completed", job["reason"]
    assert site.log_text("survivor.b", 0) == "a\n"


def test_the_examples(site):
    job, _ = run(site, ROOT / "examples/azure-ml/pipeline/pipeline.yml")
    model = json.loads(text_of(site, job["id"], "outputs/model/model.json"))
    assert abs(model["slope"] - 2) < 0.1 and abs(model["intercept"] - 1) < 0.1
    assert json.loads(text_of(site, job["id"], "outputs/report/report.json"))["error"] < 0.05
    sweep, _ = run(site, ROOT / "examples/azure-ml/sweep/job.yml")
    best = next(trial for trial in sweep["children"] if trial["best"])
    assert json.loads(text_of(site, sweep["id"], "outputs/model/point.json"))["loss"] <= 1
    assert best["metric"] == min(trial["metric"] for trial in sweep["children"] if trial["state"] == "Completed")
