"""What pyproject.toml cannot say: what setuptools writes while it builds lies outside of this folder."""
import atexit
import shutil
import tempfile

from setuptools import setup

FOLDER = tempfile.mkdtemp(prefix="tutti-forwarder-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
setup(options={"build": {"build_base": FOLDER}, "egg_info": {"egg_base": FOLDER}})
