"""This package IS tutti.core.data, as azureml.core is tutti.core."""
import sys

import azureml.core  # noqa: F401 (which knows where modules are)
import tutti.core.data

sys.modules[__name__] = tutti.core.data
