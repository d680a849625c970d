"""Azure ML's SDK by its own name, so that `from azure.ai.ml import MLClient` works unmodified: this
package IS tutti.ml. The folders azure and azure/ai have no __init__, as those of Azure's packages,
so azure.identity, azure.core and azureml.mlflow are found beside it.

It is for machines without the package azure-ai-ml: both would be the same module.
"""
import sys

try:
    import tutti.ml
    from tutti._forward import Forwarder
except ModuleNotFoundError as error:
    if error.name not in ("tutti", "tutti.ml", "tutti._forward"):
        raise
    raise ModuleNotFoundError("azure.ai.ml is tutti.ml here, which is not installed: "
                              "install tutti-client, or tutti", name=error.name) from None

sys.meta_path.insert(0, Forwarder({"azure.ai.ml": "tutti.ml"}, {}))
sys.modules[__name__] = tutti.ml
