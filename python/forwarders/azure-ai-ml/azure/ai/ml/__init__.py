"""Azure ML's SDK by its own name, so that `from azure.ai.ml import MLClient` works unmodified: this
package IS tutti.ml. The folders azure and azure/ai have no __init__, as those of Azure's packages,
so azure.identity, azure.core and azureml.mlflow are found beside it.

It is for machines without the package azure-ai-ml: both would be the same module.
"""
import sys

import tutti_azure_ai_ml  # noqa: F401 (which knows what to do without azure.identity)

try:
    import tutti.ml
    from tutti._forward import forward
except ModuleNotFoundError as error:
    if error.name not in ("tutti", "tutti.ml", "tutti._forward"):
        raise
    raise ModuleNotFoundError("azure.ai.ml is tutti.ml here, which is not installed: "
                              "install tutti-client, or tutti", name=error.name) from None

forward({"azure.ai.ml": "tutti.ml"})
sys.modules[__name__] = tutti.ml
