"""The package: what imports what, and `pip install` of this folder in an environment without
anything."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

from ranks import LIBRARY, PYTHON, ROOT, python_of

FORWARDED = {
    "horovod.common.exceptions": "tutti.comm.exceptions",
    "horovod.common.process_sets": "tutti.comm.process_sets",
    "horovod.common.basics": "tutti.comm.basics", "horovod.common.util": "tutti.comm.util",
    "horovod.common.elastic": "tutti.comm.elastic", "horovod.runner": "tutti.runner",
    "horovod.runner.common.util.env": "tutti.runner.common.util.env", "horovod.data": "tutti.data"
}


def python(program, interpreter=sys.executable, **environment):
    """What a fresh interpreter prints."""
    result = subprocess.run([interpreter, "-c", program],
                            capture_output=True,
                            text=True,
                            timeout=100,  # importing a framework takes long
                            env={
                                **os.environ, "PYTHONPATH": str(PYTHON),
                                "TUTTI_COMM_LIBRARY": str(LIBRARY), **environment
                            })
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("theirs, ours", FORWARDED.items())
def test_a_module_of_horovods_is_tuttis(theirs, ours):
    assert python(
        f"import {theirs} as a, {ours} as b; print(a is b, b.__spec__.name)") == f"True {ours}"


def test_importing_horovod_imports_no_framework():
    program = ("import horovod, sys\n"
               "print(horovod.__version__, {'torch', 'tensorflow', 'numpy'} & set(sys.modules))")
    assert python(program) == "0.28.1 set()"


@pytest.mark.parametrize("framework, others", [("torch", ["tensorflow", "keras"]),
                                               ("tensorflow", ["torch"])])
def test_importing_one_framework_does_not_import_the_other(tmp_path, framework, others):
    """Whoever imports the stand-ins of the others is told in their file, whatever it catches. Of
    TensorFlow's modules the one that imports Keras comes first, which may be so."""
    for name in others:
        (tmp_path / f"{name}.py").write_text("import traceback\n"
                                             "with open(__file__ + '.who', 'w') as who:\n"
                                             "    traceback.print_stack(file=who)\n"
                                             "raise ImportError('not wanted')\n")
    first = "tutti.keras" if framework == "tensorflow" else f"tutti.{framework}"
    program = (f"import {first}, tutti.{framework}, horovod.{framework}\n"
               "import horovod.common.util as util\n"
               f"print(util.extension_available('{framework}'), util.extension_available('mxnet'))")
    assert python(program, python_of(framework),
                  PYTHONPATH=f"{tmp_path}:{PYTHON}").splitlines()[-1] == "True False"
    assert [who.read_text() for who in tmp_path.glob("*.who")] == []


@pytest.mark.parametrize("name", ["mxnet", "spark", "ray"])
def test_what_is_not_there_is_said(name):
    program = f"try:\n    import horovod.{name}\nexcept ImportError as error:\n    print(error)"
    assert f"horovod.{name} is not part of tutti" in python(program)


def test_a_library_that_is_not_there_is_said():
    program = ("import tutti.comm as comm\ntry:\n    comm.init()\n"
               "except (ImportError, OSError) as error:\n    print(error)")
    assert "/no/such.so" in python(program, TUTTI_COMM_LIBRARY="/no/such.so")


def checked(*command, **more):
    result = subprocess.run(command, capture_output=True, text=True, timeout=400, **more)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]


@pytest.fixture(scope="module")
def builder():
    """The Python of an environment with pip and what pyproject.toml builds the package with."""
    made = subprocess.run([ROOT / "tools/package-builder-environment"], capture_output=True, text=True, timeout=100)
    if made.returncode != 0:
        pytest.skip(f"scikit-build-core cannot be had: {made.stderr.strip().splitlines()[-1:]}")
    return pathlib.Path(made.stdout.strip())


@pytest.fixture(scope="module")
def installed(builder, tmp_path_factory):
    """The Python of a fresh environment into which pip has put the package, built from this folder.
    What is compiled lies beside build/, with paths like those within it: the compiler cache knows
    most of it."""
    folder = tmp_path_factory.mktemp("installed")
    checked(sys.executable, "-m", "venv", "--without-pip", folder)
    build = pathlib.Path(os.environ.get("TUTTI_BUILD", ROOT / "build"))
    checked(builder, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
            "--disable-pip-version-check", "--config-settings",
            f"build-dir={build.with_name(build.name + '-python')}", "--wheel-dir", folder, PYTHON,
            env={**os.environ, "CC": "/usr/bin/gcc", "CXX": "/usr/bin/g++",
                 "PATH": f"{builder.parent}:/usr/bin:{os.environ['PATH']}"})
    interpreter = folder / "bin/python"
    checked(builder, "-m", "pip", "--python", interpreter, "install", "-q", "--no-deps",
            "--no-index", "--disable-pip-version-check", *folder.glob("*.whl"))
    return interpreter


def test_the_installed_package_works_by_itself(installed, tmp_path):
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "TUTTI_COMM_LIBRARY")
    }
    program = ("import horovod.common.basics as hvd; hvd.init()\n"
               "print('rank', hvd.rank(), 'of', hvd.size())")
    result = subprocess.run([installed.parent / "horovodrun", "-np", "2", installed, "-c", program],
                            capture_output=True, text=True, timeout=120, env=bare, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert sorted(
        result.stdout.splitlines()) == ["[1,0]<stdout>:rank 0 of 2", "[1,1]<stdout>:rank 1 of 2"]
    assert pathlib.Path(installed.parent / "tuttirun").exists()
    header = next(installed.parents[1].glob("lib/python3*/site-packages/tutti/include/tutti_comm.h"))
    assert "tutti_comm_submit" in header.read_text()  # what custom_op.py is compiled with
    assert next(header.parents[1].glob("ml/parameters.tsv")).exists()  # what tutti.ml reads


def oldest_python():
    """An interpreter of the oldest version that pyproject.toml allows; None: this machine has none."""
    project = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]
    name = "python" + project["requires-python"].removeprefix(">=")
    found = [shutil.which(name), *sorted(pathlib.Path.home().glob(f".pyenv/versions/*/bin/{name}")),
             *sorted(pathlib.Path.home().glob(f".local/share/uv/python/*/bin/{name}"))]
    works = "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '" + name[len("python"):] + "')"
    return next((python for python in found
                 if python and subprocess.run([python, "-c", works], capture_output=True).returncode == 0), None)


def test_ranks_run_on_the_oldest_python_that_the_package_allows():
    interpreter = oldest_python()
    if not interpreter:
        pytest.skip("this machine has no interpreter of that version")
    program = ("import sys, horovod.common.basics as hvd; hvd.init()\n"
               "print('rank', hvd.rank(), 'of', hvd.size()); sys.exit(3 * hvd.rank())")
    result = subprocess.run([interpreter, "-m", "tutti.runner", "-np", "2", interpreter, "-c", program],
                            capture_output=True, text=True, timeout=120,
                            env={**os.environ, "PYTHONPATH": str(PYTHON), "TUTTI_COMM_LIBRARY": str(LIBRARY)})
    assert sorted(result.stdout.splitlines()) == ["[1,0]<stdout>:rank 0 of 2", "[1,1]<stdout>:rank 1 of 2"], result.stderr
    assert "rank 1 failed with exit code 3" in result.stderr


def test_the_wheel_named_horovod_says_what_the_package_and_its_library_say(tmp_path):
    (tmp_path / "library.so").write_bytes(b"code")
    (tmp_path / "header.h").write_text("// words\n")
    share = tmp_path / "share"
    share.mkdir()
    (share / "horovod-0.1+tutti-py3-none-linux_aarch64.whl").write_text("of an earlier version")
    checked(sys.executable, PYTHON / "make-wheel", tmp_path / "library.so", "aarch64", tmp_path / "header.h", share)
    path, = share.iterdir()
    assert path.name == "horovod-0.28.1+tutti-py3-none-linux_aarch64.whl"
    project = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(path) as wheel:
        assert wheel.read("tutti/comm/libtutti_comm.so") == b"code"
        metadata = wheel.read("horovod-0.28.1+tutti.dist-info/METADATA").decode()
        programs = wheel.read("horovod-0.28.1+tutti.dist-info/entry_points.txt").decode()
    assert f"\nRequires-Python: {project['requires-python']}\n" in metadata
    assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE) == project["dependencies"]
    assert all(f"\n{name} = {function}\n" in programs for name, function in project["scripts"].items())
