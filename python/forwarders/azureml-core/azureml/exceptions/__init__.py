"""This package IS tutti.core.exceptions, as azureml.core is tutti.core."""
import sys

import azureml.core  # noqa: F401 (which knows where modules are)
import tutti.core.exceptions

sys.modules[__name__] = tutti.core.exceptions
