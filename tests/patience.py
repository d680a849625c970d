"""Limits that hold longer on slow machines, for the stories and for the tests of the Python package (README.md, "How long tests wait")."""
import os
import pathlib
import subprocess

TOOL = pathlib.Path(__file__).resolve().parents[1] / "tools/test-patience"


def patience(*arguments):
    """How many times longer than written limits hold: by this machine's speed and, in ./test, what else runs beside it. Kept in the environment for
    workers and ranks, which need not measure it again."""
    if not os.environ.get("TUTTI_TEST_PATIENCE"):
        os.environ["TUTTI_TEST_PATIENCE"] = subprocess.check_output([TOOL, *arguments], text=True).strip()
    return float(os.environ["TUTTI_TEST_PATIENCE"])


def make_processes_patient(factor):
    """From now on the limits of processes hold `factor` times as long."""
    class PatientProcess(subprocess.Popen):
        def wait(self, timeout=None):
            return super().wait(timeout and timeout * factor)

        def communicate(self, input=None, timeout=None):
            return super().communicate(input, timeout and timeout * factor)

    subprocess.Popen = PatientProcess  # which subprocess.run starts as well
