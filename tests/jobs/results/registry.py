"""What a registry does for MLflow 1, after register.py has put a model there as "mine" and "other"."""
import threading

import mlflow
import mlflow.pyfunc
from mlflow.exceptions import MlflowException

client = mlflow.tracking.MlflowClient()


def refused(call):
    try:
        call()
    except MlflowException as error:
        return error.error_code
    raise AssertionError("not refused")


run_id = client.get_model_version("mine", 1).run_id
with mlflow.start_run():  # as another run of the store that has a registry by now
    mlflow.log_metric("loss", 0.25)
assert int(mlflow.register_model("runs:/{}/model".format(run_id), "mine").version) == 2
client.set_model_version_tag("mine", "2", "team/a", "blue")
client.set_model_version_tag("mine", "1", "team/a", "red")
client.delete_model_version_tag("mine", "1", "team/a")
client.set_registered_model_tag("mine", "kind", "answers")
assert client.get_registered_model("mine").tags == {"kind": "answers"} and client.get_model_version("mine", 1).tags == {}
client.transition_model_version_stage("mine", 1, "Production")
client.transition_model_version_stage("mine", 2, "production", archive_existing_versions=True)
assert {found.current_stage: int(found.version) for found in client.get_latest_versions("mine")} == {"Archived": 1, "Production": 2}
assert [found.name for found in client.search_model_versions("run_id='{}'".format(run_id))] == ["mine", "mine", "other"]
assert [found.name for found in client.search_registered_models("name LIKE 'm%'")] == ["mine"]
first = client.search_registered_models(order_by=["name DESC"], max_results=1)
assert [found.name for found in first] == ["other"]
assert [found.name for found in client.search_registered_models(order_by=["name DESC"], max_results=1, page_token=first.token)] == ["mine"]
client.rename_registered_model("other", "renamed")
client.update_model_version("renamed", 1, "of another name")
assert client.get_model_version("renamed", 1).description == "of another name"

assert refused(lambda: client.create_registered_model("mine")) == "RESOURCE_ALREADY_EXISTS"
assert refused(lambda: client.rename_registered_model("renamed", "mine")) == "RESOURCE_ALREADY_EXISTS"
assert refused(lambda: client.get_registered_model("other")) == "RESOURCE_DOES_NOT_EXIST"
assert refused(lambda: client.get_model_version("mine", 9)) == "RESOURCE_DOES_NOT_EXIST"
assert refused(lambda: client.create_registered_model("../mine")) == "INVALID_PARAMETER_VALUE"

client.create_registered_model("many")
threads = [threading.Thread(target=lambda: client.create_model_version("many", "/nowhere")) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sorted(int(found.version) for found in client.search_model_versions("name='many'")) == list(range(1, 9))
client.delete_model_version("many", 8)
client.delete_registered_model("many")

assert mlflow.pyfunc.load_model("models:/mine/Production").predict([1]) == [42]
print("MLflow", mlflow.__version__, "knows", len(client.search_model_versions("")), "versions")
