"""How scripts log with MLflow, each of which fails beside another if the job names one run for all of them. ways.py WAY RATE"""
import os
import sys

import mlflow

way, rate = sys.argv[1:]
if way == "experiment":
    mlflow.set_experiment("mine")
elif way == "store":
    mlflow.set_tracking_uri("file:" + os.path.abspath("elsewhere"))
elif way == "autolog":
    from sklearn.linear_model import LogisticRegression
    mlflow.sklearn.autolog()
    LogisticRegression().fit([[0], [1], [2]], [0, 1, 1])
    sys.exit()
with mlflow.start_run():
    mlflow.log_param("rate", rate)
    mlflow.log_metric("loss", float(rate))
    if way == "nested":
        with mlflow.start_run(nested=True):
            mlflow.log_param("rate", "another")
            mlflow.log_metric("inner", 1)
