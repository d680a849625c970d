"""What pyproject.toml cannot say: what setuptools writes while it builds lies outside of this folder, and a file
at the root of the wheel."""
import atexit
import os
import shutil
import tempfile

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDER = tempfile.mkdtemp(prefix="tutti-forwarder-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


class WithPath(build_py):
    """Adds the line that Python runs as it starts: scripts import azure.identity before azure.ai.ml."""

    def run(self):
        super().run()
        self.copy_file("tutti_azure_ai_ml.pth", os.path.join(self.build_lib, "tutti_azure_ai_ml.pth"))


setup(cmdclass={"build_py": WithPath}, options={"build": {"build_base": FOLDER}, "egg_info": {"egg_base": FOLDER}})
