"""ScriptRun: what Experiment.submit gives of a ScriptRunConfig."""
from tutti.core.run import Run


class ScriptRun(Run):
    """A run of a script or a command."""
