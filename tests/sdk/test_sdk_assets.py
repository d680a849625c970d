"""Stories: what has a name (data, environments, components, computes, datastores) by tutti.ml, on the machine of the service and on another."""
import pytest

from conftest import wait_until
from sdk_clients import client, client_of, remote_client, warn_anew, write  # noqa: F401
from tutti.ml import Input, Output, command, dsl, load_component, load_environment
from tutti.ml.constants import ListViewType
from tutti.ml.entities import (
    AccountKeyConfiguration, AmlCompute, AzureBlobDatastore, CommandComponent, ComputeInstance, Data, Environment, Model, Workspace)
from tutti.ml.exceptions import ResourceExistsError, ResourceNotFoundError, UnsupportedOperationError, UserErrorException, ValidationException

HOST = {"environment": "host", "compute": "local"}


def output(client, service, job):
    made = client.jobs.create_or_update(job)
    ended = service.wait(made.name)
    assert ended["state"] == "Completed", ended["reason"]
    return service.log_text(made.name, 0)


def test_data_have_names_and_versions(client, service, tmp_path, monkeypatch, caplog):
    write(tmp_path, {"one/x": "first", "two/x": "second"})
    monkeypatch.chdir(tmp_path)
    made = client.data.create_or_update(Data(name="points", path="./one", description="about", tags={"a": "b"}))
    assert (made.name, made.version, made.id) == ("points", "1", "azureml:points:1")
    second = client.create_or_update(Data(name="points", path=str(tmp_path / "two"), type="uri_folder"))
    assert second.version == "2"
    assert client.data.get("points", "1").path == str(tmp_path / "one") and client.data.get("points", label="latest").version == "2"
    assert [(data.version, data.description) for data in client.data.list(name="points")] == [("1", "about"), ("2", None)]
    shown = command(command="cat ${{inputs.a}}/x ${{inputs.b}}/x", inputs={"a": Input(path="azureml:points:1"), "b": second}, **HOST)
    assert output(client, service, shown) == "firstsecond"
    with pytest.raises(ResourceNotFoundError, match="no data other"):
        client.data.get("other")
    with pytest.raises(ResourceNotFoundError):
        client.data.get("points", "7")
    with pytest.raises(UserErrorException):
        client.data.get("points", "1", "latest")
    with pytest.raises(ValidationException):
        client.data.create_or_update(Data(name="a b", path="./one"))
    client.data.archive("points", "1")
    assert "has no effect" in caplog.text


def test_environments_have_names(client, service, tmp_path):
    write(tmp_path, {"env.yml": "name: team\nconda_file: conda.yml\nimage: mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04\n",
                     "conda.yml": "dependencies: [python=3.11]\nvariables: {TEAM: ours}\n"})
    made = client.environments.create_or_update(load_environment(tmp_path / "env.yml"))
    assert made.id == "azureml:team:1"
    assert command(command="x", environment=made)._to_dict()["environment"] == "azureml:team:1"
    got = client.environments.get("team", version="1")
    assert got.conda_file == {"dependencies": ["python=3.11"], "variables": {"TEAM": "ours"}}
    assert client.jobs.validate(command(command="python3 -V", environment="team@latest", compute="local")).errors == []
    given = Environment(name="team", image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04",
                        conda_file={"dependencies": ["python=3.11", {"pip": ["pandas"]}]})
    other = client.environments.create_or_update(given)
    assert other.version == given.version == "2" and client.environments.create_or_update(given).version == "2"
    assert client.jobs.validate(command(command="true", environment=given, compute="local")).errors == [] and {env.version for env in client.environments.list("team")} == {"1", "2"}
    with pytest.raises(ResourceNotFoundError):
        client.environments.get("nobodys")
    assert any("sklearn" in env.name for env in client.environments.list())


def test_components_have_names_and_their_code_is_kept(client, service, tmp_path):
    write(tmp_path, {"src/a.py": "print('of version one')\n", "c.yml": "name: part\ntype: command\ncode: src\nenvironment: host\n"
                     "command: python3 a.py ${{inputs.n}}\ninputs: {n: {type: integer, default: 1}}\n"})
    made = client.components.create_or_update(load_component(tmp_path / "c.yml"))
    assert (made.name, made.version, made.id) == ("part", "1", "azureml:part:1")
    write(tmp_path, {"src/a.py": "print('of version two')\n"})
    assert client.components.create_or_update(load_component(tmp_path / "c.yml"), version="two").version == "two"
    with pytest.raises(ResourceExistsError):
        client.components.create_or_update(CommandComponent(name="part", version="1", command="true", environment="host"))
    again = CommandComponent(name="part", version="3", code=str(tmp_path / "src"), command="python3 a.py", environment="host")
    assert client.components.create_or_update(again) == client.components.create_or_update(again), "the same content is the same version"
    part = client.components.get("part", "1")

    @dsl.pipeline(default_compute="local")
    def line():
        one = part(n=3)

    made = client.jobs.create_or_update(line())
    service.wait(made.name)
    assert service.log_text(f"{made.name}.one", 0) == "of version one\n"
    write(tmp_path, {"p.yml": "type: pipeline\ncompute: local\njobs: {a: {type: command, component: 'azureml:part:two'}}\n"})
    from tutti.ml import load_job
    made = client.jobs.create_or_update(load_job(tmp_path / "p.yml"))
    service.wait(made.name)
    assert service.log_text(f"{made.name}.a", 0) == "of version two\n"
    assert [component.version for component in client.components.list("part")] == ["1", "two", "3"]
    assert client.components.validate(part).passed


def test_pipelines_and_commands_are_components_too(client, service):
    @dsl.pipeline(name="pair")
    def pair(n: int, data: Input(type="uri_folder")):
        """Two of them."""
        only = command(command="ls ${{inputs.d}} | wc -l; echo ${{inputs.n}}", inputs={"d": Input(), "n": 1}, environment="host")(n=n, d=data)

    made = client.components.create_or_update(pair)
    assert (made.name, made.type, made.description) == ("pair", "pipeline", "Two of them.")
    echo = client.components.create_or_update(command(name="echo", command="echo ${{inputs.n}}", inputs={"n": 1}, outputs={"o": Output()},
                                                      environment="host"))
    assert (echo.name, echo.inputs["n"].type, list(echo.outputs)) == ("echo", "integer", ["o"])
    part = client.components.get("pair")
    job = part(n=4, data=Input(path=str(service.home)))
    job.settings.default_compute = "local"
    made = client.jobs.create_or_update(job)
    service.wait(made.name)
    assert service.log_text(f"{made.name}.only", 0).endswith("4\n")


def test_computes_are_names_for_nodes(client, service, caplog):
    with pytest.raises(ResourceNotFoundError):
        client.compute.get("cpu-cluster")
    made = client.compute.begin_create_or_update(AmlCompute(name="cpu-cluster", type="amlcompute", size="STANDARD_D2", min_instances=1,
                                                            max_instances=1, idle_time_before_scale_down=180)).result()
    assert (made.name, made.type, made.max_instances, made.provisioning_state) == ("cpu-cluster", "amlcompute", 1, "Succeeded")
    assert "size has no effect" in caplog.text and "min_instances has no effect" in caplog.text
    assert output(client, service, command(command="echo here", environment="host", compute="cpu-cluster")) == "here\n"
    with pytest.raises(ValidationException, match="instance_count"):
        client.jobs.create_or_update(command(command="true", environment="host", compute="cpu-cluster", instance_count=2))
    client.begin_create_or_update(ComputeInstance(name="mine")).wait()
    assert {compute.name for compute in client.compute.list()} == {"local", "cpu-cluster", "mine"}
    assert [compute.name for compute in client.compute.list(compute_type="computeinstance")] == ["mine"]
    assert {node.node_id for node in client.compute.list_nodes("cpu-cluster")} == {"n1", "n2"}
    client.compute.begin_stop("mine").wait()
    client.compute.begin_delete("mine").result()
    with pytest.raises(ResourceNotFoundError):
        client.compute.get("mine")


def test_datastores_are_stores_by_name_whose_credentials_nobody_sees(client, service):
    made = client.datastores.create_or_update(AzureBlobDatastore(
        name="blobs", account_name="account", container_name="c", description="about", credentials=AccountKeyConfiguration(account_key="Z2VoZWlt")))
    assert (made.name, made.account_name, made.container_name, made.credentials) == ("blobs", "account", "c", None)
    assert [store.name for store in client.datastores.list()] == ["blobs"]
    with pytest.raises(UnsupportedOperationError, match="secret"):
        client.datastores.get("blobs", include_secrets=True)
    client.datastores.delete("blobs")
    with pytest.raises(ResourceNotFoundError):
        client.datastores.get("blobs")
    for _ in range(2):
        default = client.datastores.get_default()
        assert (default.name, default.type) == ("workspaceblobstore", "local") and (service.home / default.name).is_dir()


def test_models_have_names_versions_and_files(client, service, tmp_path, monkeypatch):
    write(tmp_path, {"model/net.bin": "one", "model/conf/a.json": "{}"})
    monkeypatch.chdir(tmp_path)
    made = client.models.create_or_update(Model(name="net", path="model", description="about", tags={"a": "b"}, properties={"p": "q"}, stage="Staging"))
    assert (made.name, made.version, made.id, made.path) == ("net", "1", "azureml:net:1", "azureml:net:1")
    write(tmp_path, {"model/net.bin": "two"})
    second = client.create_or_update(Model(name="net", path=tmp_path / "model", type="custom_model"))
    assert second.version == "2" and client.models.get("net").version == "2" and client.models.get("net", label="latest").version == "2"
    with pytest.raises(ResourceExistsError, match="net:1 is there with other files"):
        client.models.create_or_update(Model(name="net", version="1", path="model"))
    first = client.models.get("net", version="1")
    assert (first.description, first.tags, first.properties, first.stage) == ("about", {"a": "b"}, {"p": "q"}, "Staging")
    first.tags["c"], first.stage = "d", "Production"
    assert client.models.create_or_update(first).tags == {"a": "b", "c": "d"}
    assert [model.version for model in client.models.list("net", stage="Production")] == ["1"]
    assert [(model.name, model.latest_version) for model in client.models.list()] == [("net", "2")]
    shown = command(command="cat ${{inputs.a}}/net.bin ${{inputs.b}}/net.bin", inputs={"a": first, "b": Input(type="custom_model", path="azureml:net@latest")}, **HOST)
    assert output(client, service, shown) == "onetwo"

    client.models.download("net", "1", download_path="got")
    assert (tmp_path / "got/net/net.bin").read_text() == "one" and (tmp_path / "got/net/conf/a.json").read_text() == "{}"
    client.models.archive("net", version="2")
    assert client.models.get("net").version == "1" and [model.version for model in client.models.list("net")] == ["1"]
    assert {model.version for model in client.models.list("net", list_view_type=ListViewType.ALL)} == {"1", "2"}
    client.models.restore("net", version="2")
    client.models.archive("net")
    assert list(client.models.list()) == [] and [model.name for model in client.models.list(list_view_type=ListViewType.ARCHIVED_ONLY)] == ["net"]
    with pytest.raises(ResourceNotFoundError, match="no model other"):
        client.models.get("other")
    with pytest.raises(UserErrorException):
        client.models.get("net", "1", "latest")
    with pytest.raises(ValidationException, match="does not exist"):
        client.models.create_or_update(Model(name="net", path="nowhere"))


def test_a_model_is_made_of_what_a_job_has_left_also_from_elsewhere(client, remote_client, service, tmp_path):
    job = client.jobs.create_or_update(command(command="echo weights > ${{outputs.model}}/net.bin", outputs={"model": Output()}, **HOST))
    service.wait(job.name)
    made = remote_client.models.create_or_update(Model(name="net", path=f"azureml://jobs/{job.name}/outputs/model/paths/"))
    assert (made.version, made.job_name) == ("1", job.name)
    remote_client.models.download("net", "1", download_path=tmp_path)
    assert (tmp_path / "net/net.bin").read_text() == "weights\n"
    with pytest.raises(ResourceNotFoundError, match="has no outputs/other"):
        remote_client.models.create_or_update(Model(name="net", path=f"azureml://jobs/{job.name}/outputs/other/paths/"))


def test_what_the_service_does_not_keep_is_refused_by_name(client):
    with pytest.raises(UnsupportedOperationError, match="models are not served"):
        client.models.package("m", "1")
    with pytest.raises(UnsupportedOperationError, match="made by tutti serve"):
        client.begin_create_or_update(Workspace(name="w"))
    for call in (client.data.mount, client.data.share, client.compute.list_sizes, client.workspaces.get_keys, client.environments.share):
        with pytest.raises(UnsupportedOperationError):
            call()


def test_on_another_machine_names_are_not_made_and_what_to_type_is_said(remote_client, service):
    with pytest.raises(UnsupportedOperationError) as raised:
        remote_client.data.create_or_update(Data(name="d", path="/data/d"))
    message = str(raised.value)
    assert "TUTTI_ADDRESS names a service" in message and "tutti data create --file data.yml" in message and "path: /data/d" in message
    with pytest.raises(UnsupportedOperationError):
        remote_client.environments.get("x")
    with pytest.raises(UnsupportedOperationError) as raised:
        remote_client.datastores.create_or_update(AzureBlobDatastore(name="b", account_name="a", container_name="c",
                                                                     credentials=AccountKeyConfiguration(account_key="geheim")))
    assert "geheim" not in str(raised.value)
    assert [compute.name for compute in remote_client.compute.list()] == ["local"]
    assert remote_client.compute.get("local").name == "local"


def test_without_the_program_names_are_not_made(client, monkeypatch):
    monkeypatch.setenv("TUTTI_PROGRAM", "no-such-program")
    with pytest.raises(UnsupportedOperationError, match="not on this machine's PATH"):
        list(client.data.list())
    monkeypatch.delenv("TUTTI_PROGRAM")
    monkeypatch.setenv("TUTTI_ADDRESS", client._connection.endpoint().address)
    assert list(client.data.list()) == [], "it is the address of the service whose home this is"
    job = client.jobs.create_or_update(command(command="true", **HOST))
    wait_until(lambda: client.jobs.get(job.name).status == "Completed", 60, "jobs need no program")
