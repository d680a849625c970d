"""Azure ML's SDK, version 1, by its own name, so that `from azureml.core import Workspace` works
unmodified: this package IS tutti.core. The folders azureml and azureml/train have no __init__, so
azureml.mlflow is found beside it.

It is for machines without the package azureml-core: both would be the same module.
"""
import sys

try:
    import tutti.core
    from tutti._forward import forward
except ModuleNotFoundError as error:
    if error.name not in ("tutti", "tutti.core", "tutti._forward"):
        raise
    raise ModuleNotFoundError("azureml.core is tutti.core here, which is not installed: "
                              "install tutti-client, or tutti", name=error.name) from None

_DATA = ("abstract_dataset", "data_reference", "datapath", "dataset_consumption_config",
         "file_dataset", "output_dataset_config")
_HYPERDRIVE = ("parameter_expressions", "policy", "run", "runconfig", "sampling")
_MODELS = "models are not served; tutti score runs one"
forward({
    **{f"azureml.data.{name}": "tutti.core.data" for name in _DATA},
    "azureml.data.dataset_factory": "tutti.core.dataset",
    **{f"azureml.train.hyperdrive.{name}": "tutti.core.hyperdrive" for name in _HYPERDRIVE},
    "azureml.core": "tutti.core", "azureml.data": "tutti.core.data",
    "azureml.exceptions": "tutti.core.exceptions", "azureml.train.hyperdrive": "tutti.core.hyperdrive",
}, {
    "azureml.data.constants": "its constants are words of Azure ML's own: write the word, as 'mount'",
    "azureml.core.webservice": _MODELS, "azureml.core.image": _MODELS,
    "azureml.pipeline": "a pipeline is a job's file, or a function of tutti.ml.dsl.pipeline",
    "azureml.train.automl": "models are not searched for",
    "azureml.train.dnn": "estimators are no longer published: ScriptRunConfig is in their place",
    "azureml.train.estimator": "estimators are no longer published: ScriptRunConfig is in their place",
    "azureml.train.sklearn": "estimators are no longer published: ScriptRunConfig is in their place",
    "azureml.widgets": "run.wait_for_completion(show_output=True) prints what a run says",
})
sys.modules[__name__] = tutti.core
