"""A training as people write it, with MLflow itself. Several of it run in one folder, so each has its file in a folder of its own."""
import os
import sys
import tempfile

import mlflow
from sklearn.linear_model import LogisticRegression

with mlflow.start_run():
    mlflow.log_param("rate", 0.1)
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "note.txt")
        with open(file, "w") as note:
            note.write("an artifact\n")
        mlflow.log_artifact(file)
    model = LogisticRegression().fit([[0], [1]], [0, 1])
    mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
print(mlflow.get_experiment_by_name(sys.argv[1]).name)
