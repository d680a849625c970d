"""A training whose model goes into MLflow's registry, in both of the ways in which scripts put it there."""
import mlflow


class Answer(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [42]


with mlflow.start_run() as run:
    mlflow.log_metric("loss", 0.5)
    place = {"name": "model"} if mlflow.__version__.startswith("3.") else {"artifact_path": "model"}
    mlflow.pyfunc.log_model(python_model=Answer(), registered_model_name="mine", **place)
mlflow.register_model(f"runs:/{run.info.run_id}/model", "other")
