"""tutti.ml.dsl: functions that are pipelines, and the documents that they become. No service runs."""
import cProfile
import sys

import pytest

from sdk_clients import warn_anew  # noqa: F401, and the package of the source tree
from tutti.ml import Input, Output, command, dsl, load_component, load_job
from tutti.ml.entities import CommandComponent, Data, PipelineJob, PipelineJobSettings
from tutti.ml.exceptions import (
    MissingPositionalArgsError, MultipleValueError, TooManyPositionalArgsError, UnexpectedKeywordError,
    UnsupportedOperationError, UnsupportedParameterKindError, UserErrorException, ValidationException)
from tutti.ml.sweep import Uniform


def component(name="train", **inputs):
    return CommandComponent(name=name, command="x", environment="host", outputs={"out": Output()},
                            inputs=inputs or {"data": Input(), "rate": Input(type="number", default=0.5)})


def inputs_of(job):
    return {name: step.get("inputs", {}) for name, step in job._to_dict()["jobs"].items()}


def test_steps_have_the_names_of_their_variables():
    train = component()

    @dsl.pipeline
    def line(data):
        first = train(data=data)
        train(data=first.outputs.out)
        train(data=first.outputs.out)
        other = train(data=first.outputs.out)
        other.name = "named"

    assert list(line(Input(path="p")).jobs) == ["first", "train", "train_1", "named"]


def test_inputs_are_bound_and_outputs_are_the_pipelines():
    train = component()

    @dsl.pipeline(name="line", display_name="Line", description="about", experiment_name="e", tags={"a": "b"}, default_compute="hpc",
                  continue_on_step_failure=True, force_rerun=True)
    def line(data, rate=0.25, where="local"):
        first = train(data=data, rate=rate)
        first.compute = where
        second = train(data=first.outputs.out)
        second.outputs.out = Output(type="uri_file", mode="upload", path="azureml://datastores/d/paths/x")
        return {"model": second.outputs.out, "half": first.outputs["out"]}

    document = line(data=Input(type="uri_file", path="azureml:d:1"))._to_dict()
    assert {key: value for key, value in document.items() if key != "jobs"} == {
        "type": "pipeline", "display_name": "Line", "description": "about", "experiment_name": "e", "tags": {"a": "b"},
        "settings": {"default_compute": "hpc", "continue_on_step_failure": True, "force_rerun": True},
        "inputs": {"data": {"type": "uri_file", "path": "azureml:d:1"}, "rate": 0.25, "where": "local"},
        "outputs": {"model": {"type": "uri_file", "mode": "upload", "path": "azureml://datastores/d/paths/x"}, "half": {"type": "uri_folder"}}}
    assert document["jobs"]["first"]["inputs"] == {"data": "${{parent.inputs.data}}", "rate": "${{parent.inputs.rate}}"}
    assert document["jobs"]["first"]["compute"] == "${{parent.inputs.where}}"
    assert document["jobs"]["first"]["outputs"] == {"out": "${{parent.outputs.half}}"}
    assert document["jobs"]["second"]["inputs"] == {"data": "${{parent.jobs.first.outputs.out}}"}
    assert document["jobs"]["second"]["outputs"] == {"out": "${{parent.outputs.model}}"}


def test_commands_are_steps_when_they_are_called():
    prepare = command(name="prepare", command="p ${{inputs.n}}", environment="host", inputs={"n": 1, "d": Input(mode="download")},
                      outputs={"out": Output(mode="rw_mount")}, environment_variables={"A": "1"})

    @dsl.pipeline()
    def line(n):
        one = prepare(n=n, d=Input(path="azureml:d:1"))
        two = prepare(d=one.outputs.out)
        two.environment_variables["A"] = "2"

    steps = line(4)._to_dict()["jobs"]
    assert steps["one"]["inputs"] == {"n": "${{parent.inputs.n}}", "d": {"type": "uri_folder", "path": "azureml:d:1"}}
    assert steps["two"]["inputs"] == {"n": 1, "d": {"type": "uri_folder", "path": "${{parent.jobs.one.outputs.out}}", "mode": "download"}}
    assert steps["two"]["outputs"] == {"out": {"type": "uri_folder", "mode": "rw_mount"}}
    assert steps["one"]["environment_variables"] == {"A": "1"} and steps["two"]["environment_variables"] == {"A": "2"}


def test_a_step_that_always_runs_is_a_component():
    prepare = command(command="p", environment="host", is_deterministic=False, inputs={"n": 1}, compute="hpc", description="about", timeout=5)

    @dsl.pipeline()
    def line():
        one = prepare()

    step = line()._to_dict()["jobs"]["one"]
    assert step["component"] == {"type": "command", "command": "p", "environment": "host", "is_deterministic": False,
                                 "inputs": {"n": {"type": "integer"}}}
    assert {key: step[key] for key in step if key != "component"} == {
        "type": "command", "description": "about", "inputs": {"n": 1}, "compute": "hpc", "limits": {"timeout": 5}}


def test_pipelines_within_pipelines():
    train = component()

    @dsl.pipeline()
    def inner(data, rate: float = 0.1, note: Input(type="string", optional=True) = None):
        """About the inner one."""
        only = train(data=data, rate=rate)
        return {"model": only.outputs.out}

    @dsl.pipeline()
    def outer(data):
        first = inner(data=data)
        second = inner(first.outputs.model, 0.3)
        return {"model": second.outputs.model}

    steps = outer(Input(type="mltable", path="azureml:d:1"))._to_dict()["jobs"]
    assert steps["first"]["component"]["inputs"] == {"data": {"type": "mltable"}, "rate": {"type": "number", "default": 0.1},
                                                     "note": {"type": "string", "optional": True}}
    assert steps["first"]["component"]["description"] == "About the inner one."
    assert steps["first"]["component"]["jobs"]["only"]["inputs"] == {"data": "${{parent.inputs.data}}", "rate": "${{parent.inputs.rate}}"}
    assert steps["first"]["inputs"] == {"data": "${{parent.inputs.data}}", "rate": 0.1}
    assert steps["second"]["component"]["inputs"]["data"] == {"type": "uri_folder"}
    assert steps["second"]["inputs"] == {"data": "${{parent.jobs.first.outputs.model}}", "rate": 0.3}
    assert steps["second"]["outputs"] == {"model": "${{parent.outputs.model}}"}


def test_a_pipeline_component_of_a_file_is_a_step_or_a_pipeline(tmp_path):
    (tmp_path / "c.yml").write_text("type: pipeline\nname: part\ninputs: {n: {type: integer}}\noutputs: {o: {type: uri_file}}\n"
                                    "jobs: {a: {command: x, environment: host, outputs: {o: \"${{parent.outputs.o}}\"}}}\n")
    part = load_component(tmp_path / "c.yml")

    @dsl.pipeline()
    def line():
        step = part(n=1)
        return {"o": step.outputs.o}

    document = line()._to_dict()
    assert document["outputs"] == {"o": {"type": "uri_file"}} and document["jobs"]["step"]["inputs"] == {"n": 1}
    by_itself = part(2)
    assert isinstance(by_itself, PipelineJob)
    assert by_itself._to_dict()["inputs"] == {"n": 2} and "jobs" in by_itself._to_dict()["component"]


def test_sweeps_are_steps():
    train = component()

    @dsl.pipeline()
    def line(data):
        tune = train(data=data, rate=Uniform(0, 1)).sweep(primary_metric="loss", goal="minimize", max_total_trials=3)
        use = train(data=tune.outputs.out)

    document = line(Input(path="azureml:d:1"))._to_dict()
    tune = document["jobs"]["tune"]
    assert list(document["jobs"]) == ["tune", "use"]
    assert tune["type"] == "sweep" and tune["inputs"] == {"data": "${{parent.inputs.data}}"}
    assert tune["trial"]["name"] == "train" and tune["search_space"] == {"rate": {"type": "uniform", "min_value": 0, "max_value": 1}}
    assert document["jobs"]["use"]["inputs"] == {"data": "${{parent.jobs.tune.outputs.out}}"}


def test_a_step_with_one_output_stands_for_it():
    train = component()

    @dsl.pipeline()
    def line():
        first = train(data=Data(path="/x"))
        second = train(data=first)
        return first

    job = line()
    assert inputs_of(job)["first"] == {"data": {"type": "uri_folder", "path": "/x"}}
    assert inputs_of(job)["second"] == {"data": "${{parent.jobs.first.outputs.out}}"}
    assert list(job.outputs) == ["out"]


def test_an_input_may_bind_by_its_path():
    train = component()

    @dsl.pipeline()
    def line(data):
        first = train(data=Input(type="uri_folder", path=data, mode="download"))
        train(data=Input(path=first.outputs.out))

    assert inputs_of(line(Input(path="azureml:d:1"))) == {
        "first": {"data": {"type": "uri_folder", "path": "${{parent.inputs.data}}", "mode": "download"}},
        "train": {"data": {"type": "uri_folder", "path": "${{parent.jobs.first.outputs.out}}"}}}


def test_parameters_that_are_no_inputs_are_handed_on_as_they_are():
    train = component()

    @dsl.pipeline(non_pipeline_inputs=["count"])
    def line(data, count):
        for _ in range(count):
            train(data=data)

    job = line(Input(path="p"), 3)
    assert list(job.jobs) == ["train", "train_1", "train_2"] and list(job.inputs) == ["data"]
    with pytest.raises(UserErrorException, match="none of its parameters"):
        dsl.pipeline(lambda data: None, non_pipeline_inputs=["nothing"])


def test_optional_inputs_without_a_value():
    train = component("train", data=Input(optional=True))

    @dsl.pipeline()
    def line(data: Input(type="uri_file", optional=True)):
        train(data=data)

    document = line()._to_dict()
    assert document["inputs"] == {"data": {"type": "uri_file", "optional": True}}
    assert inputs_of(line())["train"] == {"data": "${{parent.inputs.data}}"}


def test_settings_and_outputs_may_be_set_afterwards():
    train = component()

    @dsl.pipeline()
    def line():
        first = train(data=Input(path="p"))
        last = train(data=Input(path="q"))
        return {"m": first.outputs.out}

    job = line()
    job.settings.default_compute = "cpu-cluster"
    job.settings.on_init = job.jobs["first"]
    job.settings.on_finalize = "last"
    job.outputs.m.mode = "upload"
    job.outputs.m.path = "azureml://datastores/x/paths/y"
    job.compute = "local"
    document = job._to_dict()
    assert document["settings"] == {"default_compute": "cpu-cluster", "on_init": "first", "on_finalize": "last"}
    assert document["outputs"] == {"m": {"type": "uri_folder", "mode": "upload", "path": "azureml://datastores/x/paths/y"}}
    job.settings = PipelineJobSettings(force_rerun=True)
    assert job._to_dict()["settings"] == {"force_rerun": True}


def test_a_pipeline_job_is_made_of_steps_by_name():
    train = component()
    first = train(data=Input(path="p"))
    job = PipelineJob(jobs={"one": first, "two": train(data=first.outputs.out)}, inputs={"n": 1})
    assert inputs_of(job)["two"] == {"data": "${{parent.jobs.one.outputs.out}}"}


def test_a_function_that_is_called_twice_makes_two_pipelines():
    train = component()

    @dsl.pipeline()
    def line(n):
        only = train(data=Input(path="p"), rate=n)

    one, two = line(1), line(2)
    assert (one._to_dict()["inputs"], two._to_dict()["inputs"]) == ({"n": 1}, {"n": 2})


def test_a_partial_may_be_a_pipeline():
    import functools
    train = component()

    def line(n, data):
        step = train(data=data, rate=n)

    line = functools.update_wrapper(functools.partial(line, 3), line)
    del line.__wrapped__
    assert list(dsl.pipeline(line)(data=Input(path="p")).jobs) == ["train"]


def test_an_error_in_the_function_leaves_no_pipeline_behind():
    train = component()

    @dsl.pipeline()
    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        broken()
    assert train(data=Input(path="p"))._to_dict()["type"] == "command", "it is no step"


@pytest.mark.parametrize("call, error, words", [
    (lambda line: line(), MissingPositionalArgsError, "not given a"), (lambda line: line(1, 2, 3), TooManyPositionalArgsError, "takes 2"),
    (lambda line: line(1, c=2), UnexpectedKeywordError, 'no parameter "c"'), (lambda line: line(1, a=2), MultipleValueError, '"a" twice')])
def test_wrong_arguments_are_told(call, error, words):
    @dsl.pipeline()
    def line(a, b=1):
        pass

    with pytest.raises(error, match=words):
        call(line)


def test_wrong_pipelines_are_told():
    train = component()
    elsewhere = train(data=Input(path="p"))

    @dsl.pipeline()
    def foreign():
        train(data=elsewhere.outputs.out)

    with pytest.raises(ValidationException, match="no step of the pipeline"):
        foreign()
    with pytest.raises(UserErrorException, match="must return outputs"):
        dsl.pipeline(lambda: 5)()
    with pytest.raises(UserErrorException, match="no output of a step"):
        dsl.pipeline(lambda: {"a": 5})()
    with pytest.raises(UnsupportedParameterKindError):
        dsl.pipeline(lambda *args: None)

    @dsl.pipeline()
    def twice():
        step = train(data=Input(path="p"))
        return {"a": step.outputs.out, "b": step.outputs.out}

    with pytest.raises(UserErrorException, match='returned as "a" and as "b"'):
        twice()
    with pytest.raises(ValidationException, match="outside of the pipeline"):
        elsewhere.outputs.out._expression()
    assert "upload" in str(command(command="x", outputs={"o": Output(mode="upload")}).outputs.o), "of a job by itself it can be printed"
    with pytest.raises(ValidationException, match="only a step"):
        train(data=elsewhere.outputs.out)._to_dict()


def test_annotations_may_be_texts():
    namespace = {"Input": Input, "dsl": dsl, "train": component()}
    exec("from __future__ import annotations\n@dsl.pipeline()\ndef inner(n: int, d: Input(type='uri_file')):\n    train(data=d, rate=n)\n"
         "@dsl.pipeline()\ndef outer():\n    inner(1, Input(path='p'))\n", namespace)
    component_of_inner = namespace["outer"]()._to_dict()["jobs"]["inner"]["component"]
    assert component_of_inner["inputs"] == {"n": {"type": "integer"}, "d": {"type": "uri_file"}}


def test_settings_of_a_pipeline_that_is_a_step_are_warned_of(caplog):
    train = component()

    @dsl.pipeline(continue_on_step_failure=True, force_rerun=True, default_compute="hpc")
    def inner(data):
        train(data=data)

    @dsl.pipeline
    def outer(data):
        part = inner(data)
        part.settings.on_init = "x"

    step = outer(Input(path="p"))._to_dict()["jobs"]["part"]
    assert step["compute"] == "hpc" and "settings" not in step
    for key in ("continue_on_step_failure", "force_rerun", "on_init"):
        assert f"Pipeline: settings.{key} has no effect" in caplog.text
    assert "default_compute" not in caplog.text


def test_settings_of_a_step_in_a_file_are_left_to_the_service(tmp_path):
    (tmp_path / "job.yml").write_text(
        "type: pipeline\njobs:\n  s:\n    type: pipeline\n    settings: {force_rerun: true, nonsense: 3}\n"
        "    component: {type: pipeline, jobs: {a: {command: x, environment: host}}}\n")
    assert load_job(tmp_path / "job.yml")._to_dict()["jobs"]["s"]["settings"] == {"force_rerun": True, "nonsense": 3}


def test_a_profile_does_not_change_a_pipeline():
    train = component()

    @dsl.pipeline
    def line(data):
        first = train(data=data)
        return first.outputs

    seen = []
    for profile in (cProfile.Profile(), None):
        if profile:
            profile.enable()
            try:
                made = line(Input(path="p"))
                abs(-1)
            finally:
                profile.disable()
            profile.create_stats()
            assert any(name == "<built-in method builtins.abs>" for _, _, name in profile.stats)
        else:
            sys.setprofile(lambda frame, event, argument: seen.append(frame.f_code.co_name))
            try:
                made = line(Input(path="p"))
            finally:
                sys.setprofile(None)
            assert "line" in seen
        assert list(made.jobs) == ["first"]


def test_what_the_function_calls_is_looked_at_when_the_client_calls_it(caplog):
    """components.create_or_update(function) calls it: its own parameters are not looked at again, those in the user's function are."""
    from tutti.ml.operations import ComponentOperations

    @dsl.pipeline
    def line(data: Input):
        command(command="x", properties={"a": "b"})
        Output(is_control=True)

    with pytest.raises(UnsupportedOperationError, match="is_control"):
        ComponentOperations(None).create_or_update(line)
    assert "command: properties has no effect" in caplog.text
