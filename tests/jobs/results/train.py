"""A training as people write it, with MLflow itself."""
import sys

import mlflow
from sklearn.linear_model import LogisticRegression

with mlflow.start_run():
    mlflow.log_param("rate", 0.1)
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    with open("note.txt", "w") as note:
        note.write("an artifact\n")
    mlflow.log_artifact("note.txt")
    model = LogisticRegression().fit([[0], [1]], [0, 1])
    mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
print(mlflow.get_experiment_by_name(sys.argv[1]).name)
