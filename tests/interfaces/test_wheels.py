"""Story: people who have no compiler and no checkout install tutti's wheels with pip, and run jobs: what is in the wheels, and what an environment of
them can do. They are packed from the programs that the other tests run (tools/wheels)."""
import collections
import email
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import BIN, PATIENCE, ROOT, Service
from needs import needs, python_of

PYTHON = ROOT / "python"
BUILD = BIN.parent
# What each Linux of the wheel's tag has: glibc's, GCC's and zlib (auditwheel's policy).
OF_EVERY_LINUX = re.compile(r"(ld-linux-x86-64\.so\.2|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+|z)\.so\.\d+)$")
OF_TORCH = re.compile(r"lib(torch\w*|c10\w*|cudart|gomp)\.so[.\d]*$")
GLIBC = 35  # 2.35, or newer, is what docs/install/wheels.md asks for
needs_storage = needs("" if (BIN / "tutti-storage").exists() else "tutti-storage was not built: tools/setup storage fetches Arrow for it")

pytestmark = needs_storage


@pytest.fixture(scope="module")
def packer():
    """The Python that packs."""
    return pathlib.Path(python_of("wheels"))


def pack(packer, folder, **options):
    done = subprocess.run([packer, PYTHON / "make-wheel", "programs", BUILD, folder], capture_output=True, text=True, timeout=300 * PATIENCE, **options)
    assert done.returncode == 0, done.stderr
    return {path.name.split("-")[0]: path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def wheels(packer, tmp_path_factory):
    """The three, by their names: tutti_client, tutti, tutti_train."""
    return pack(packer, tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def unpacked(wheels, tmp_path_factory):
    """What is in each of them, in a folder of its name."""
    folder = tmp_path_factory.mktemp("unpacked")
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder / name)
    for inner in folder.glob("tutti/tutti/share/tutti/*.whl"):
        with zipfile.ZipFile(inner) as wheel:
            wheel.extractall(folder / "horovod")
    return folder


def about(unpacked, name):
    return email.message_from_string(next((unpacked / name).glob("*.dist-info/METADATA")).read_text())


def elf_files(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def dynamic(path, kind):
    """Entries of a kind, NEEDED or RPATH, of a program or library."""
    printed = subprocess.run(["readelf", "--dynamic", "--wide", path], check=True, capture_output=True, text=True).stdout
    return re.findall(rf"\({kind}\).*\[(.*)\]", printed)


def test_packing_again_gives_the_same_bytes(packer, wheels, tmp_path):
    """By another user's settings, at another time, from another folder."""
    again = pack(packer, tmp_path / "again", cwd="/", umask=0o077, env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C", "TMPDIR": str(tmp_path)})
    assert sorted(path.name for path in wheels.values()) == sorted(path.name for path in again.values())
    assert [name for name in wheels if wheels[name].read_bytes() != again[name].read_bytes()] == []


def test_each_file_is_of_one_wheel_and_each_wheel_names_those_it_needs(wheels, unpacked):
    owners = collections.defaultdict(list)
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as wheel:
            for file in wheel.namelist():
                owners[file].append(name)
    assert {file: names for file, names in owners.items() if len(names) > 1} == {}
    package = [path.relative_to(PYTHON).as_posix() for folder in ("tutti", "horovod") for path in (PYTHON / folder).rglob("*")
               if path.suffix in (".py", ".cc", ".tsv")]
    assert [file for file in package if file not in owners] == []
    assert owners["tutti/ml/__init__.py"] == owners["tutti/__init__.py"] == ["tutti_client"] and owners["tutti/comm/__init__.py"] == ["tutti"]
    assert owners["tutti/bin/tutti"] == ["tutti"] and owners["tutti/bin/tutti-train"] == ["tutti_train"]
    version = about(unpacked, "tutti_client")["Version"]
    of_tutti = about(unpacked, "tutti").get_all("Requires-Dist")
    assert f"tutti-client=={version}" in of_tutti and f'tutti-train=={version}; extra == "train"' in of_tutti and not any("torch" in one for one in of_tutti)
    torch = re.search(r"^TUTTI_LIBTORCH:PATH=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    minor = re.search(r"__version__ = '(\d+\.\d+)\.", (pathlib.Path(torch) / "version.py").read_text())[1]
    assert about(unpacked, "tutti_train").get_all("Requires-Dist") == [f"tutti=={version}", f"torch=={minor}.*"]


def test_what_a_program_needs_is_in_its_wheel_or_on_every_linux(wheels, unpacked):
    for name in ("tutti", "tutti_train", "horovod"):
        files = elf_files(unpacked / name)
        there = {path.name for path in files}
        strangers = {(path.name, library) for path in files for library in dynamic(path, "NEEDED")
                     if library not in there and not OF_EVERY_LINUX.match(library) and not (name == "tutti_train" and OF_TORCH.match(library))}
        assert strangers == set(), name
        assert not [path for path in files if OF_TORCH.match(path.name)]
    tags = [re.search(r"-py3-none-manylinux_2_(\d+)_x86_64$", wheels[name].stem) for name in ("tutti", "tutti_train")]
    assert all(tag is not None and int(tag[1]) <= GLIBC for tag in tags), tags


def test_nothing_names_a_folder_of_the_machine_that_built_it(unpacked):
    settings = re.findall(r"^TUTTI_(?:LIBTORCH|ARROW):PATH=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)
    here = [str(folder).encode() for folder in (ROOT, BUILD.resolve(), *settings)]
    own = [path for path in unpacked.rglob("*") if path.is_file() and not path.parent.name.endswith(".libs") and path.suffix != ".whl"]
    assert [(path, folder) for path in own for folder in here if folder in path.read_bytes()] == []
    paths = {entry for path in elf_files(unpacked) for kind in ("RPATH", "RUNPATH") for line in dynamic(path, kind) for entry in line.split(":")}
    assert paths and all(entry.startswith("$ORIGIN") for entry in paths), paths


def test_the_licence_of_each_library_that_is_not_tuttis_is_there(unpacked):
    for name in ("tutti", "tutti_train", "horovod"):
        licences, = (unpacked / name).glob("*.dist-info/licenses")
        packages = {path.name for path in licences.iterdir()}
        assert {"libssl3"} <= packages and all(path.stat().st_size > 100 for path in licences.rglob("*") if path.is_file())
        listed = dict(line.split(" ") for line in (licences.parent / "libraries.txt").read_text().splitlines())
        assert set(listed) == packages and all(re.match(r"(\d+:)?\d+\.", version) for version in listed.values())
    packages = {path.name for path in unpacked.glob("tutti/*.dist-info/licenses/*")}
    assert {"libcurl4", "pyarrow", "libyaml-cpp0.7", "libnfs13"} <= packages


class Installed:
    """A fresh environment with wheels in it, and nothing else; it is not activated."""

    def __init__(self, packer, folder, wheels):
        self.folder, self.packer = folder, packer
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / "bin/python"
        self.packages = pathlib.Path(self.run(self.python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").stdout.strip())
        if wheels:
            self.install(*wheels)

    def install(self, *wheels):
        self.run(self.packer, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", *wheels)

    def environment(self, activated=False):
        """A user's who has no checkout and no compiler."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        path = f"{self.folder}/bin:/usr/bin:/bin" if activated else "/usr/bin:/bin"
        return {"PATH": path, "HOME": str(home), "CXX": "/nowhere", "LC_ALL": "C.UTF-8", "OMP_WAIT_POLICY": "passive"}

    def run(self, *command, code=0, **environment):
        done = subprocess.run([*map(str, command)], cwd="/", env={**self.environment(), **environment}, capture_output=True, text=True,
                              timeout=100 * PATIENCE)
        assert done.returncode == code, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def installed(packer, wheels, tmp_path_factory):
    """tutti alone, as a machine has it that trains with frameworks of its own."""
    return Installed(packer, tmp_path_factory.mktemp("environment"), [wheels["tutti_client"], wheels["tutti"]])


@pytest.fixture(scope="module")
def torch_packages():
    """Where PyTorch lies, installed."""
    return next(pathlib.Path(python_of("torch")).parents[1].glob("lib/python3*/site-packages"))


@pytest.fixture(scope="module")
def with_torch(packer, wheels, torch_packages, tmp_path_factory):
    """All three beside torch, for which a link stands: it has 5 GB."""
    installed = Installed(packer, tmp_path_factory.mktemp("training"), wheels.values())
    (installed.packages / "torch").symlink_to(torch_packages / "torch")
    (installed.packages / "others.pth").write_text(f"{torch_packages}\n")
    return installed


@pytest.fixture
def serve(tmp_path):
    """A function that starts the service of an environment, which is activated, with two nodes."""
    services = []

    def start(installed):
        service = Service(tmp_path / "home")
        service.program = installed.folder / "bin/tutti"
        service.environment = {**installed.environment(activated=True), "TUTTI_HOME": str(service.home), "NO_COLOR": "1"}
        services.append(service)
        return service.start()

    yield start
    for service in services:
        service.stop()


def log_of(service, name, seconds):
    job = service.wait(name, seconds)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    return service.log_text(name, 0)


def test_jobs_run_on_two_nodes_by_an_environments_own_programs(installed, serve, write_job):
    service = serve(installed)
    name = service.submit(write_job("echo $RANK of $WORLD_SIZE; for one in tutti tutti-storage tutti-data; do readlink -f $(command -v $one); done",
                                    nodes=2, distribution="pytorch"))
    programs = installed.packages.resolve() / "tutti/bin"
    assert log_of(service, name, 60).splitlines() == ["0 of 2", *(str(programs / one) for one in ("tutti", "tutti-storage", "tutti-data"))]
    assert service.log_text(name, 1).startswith("1 of 2\n")
    loaded = pathlib.Path(f"/proc/{service.process.pid}/maps").read_text()
    assert f"{programs}/tutti\n" in loaded and "/tutti.libs/libssl-" in loaded and str(ROOT) not in loaded and str(BUILD.resolve()) not in loaded


def test_what_the_other_wheel_brings_is_said(installed):
    done = installed.run(installed.folder / "bin/tutti", "score", "a.jpg", code=4)
    assert "tutti-score is not beside this program" in done.stderr and "install the wheel tutti-train" in done.stderr


def test_modules_find_the_programs_that_they_came_with(installed, serve):
    """Also where the environment is not activated: names are kept by the program tutti."""
    service = serve(installed)
    (installed.packages / "yaml").symlink_to(pathlib.Path(importlib.util.find_spec("yaml").origin).parent)
    script = "from tutti import _programs\nfrom tutti.ml import MLClient\nfrom tutti.ml.entities import Environment\n" \
             "print(MLClient(None).environments.create_or_update(Environment(name='mine', image='python:3.11')).name, _programs.find('tutti-storage'))"
    done = installed.run(installed.python, "-c", script, TUTTI_HOME=str(service.home))
    assert done.stdout.split() == ["mine", str(installed.packages / "tutti/bin/tutti-storage")]


RANKS = "import horovod.common.basics as hvd; hvd.init(); print('rank', hvd.rank(), 'of', hvd.size())"


def test_ranks_meet_in_an_environment_and_in_that_of_a_job(installed, packer, tmp_path):
    """The latter gets a wheel that the former's programs have with them."""
    of_jobs, = (installed.packages / "tutti/share/tutti").glob("horovod-*-manylinux_2_*_x86_64.whl")
    for one in (installed, Installed(packer, tmp_path / "job", [of_jobs])):
        done = one.run(one.folder / "bin/horovodrun", "-np", 2, one.python, "-c", RANKS)
        assert sorted(done.stdout.splitlines()) == ["[1,0]<stdout>:rank 0 of 2", "[1,1]<stdout>:rank 1 of 2"]


def test_the_export_to_onnx_is_a_program_that_says_what_it_lacks(installed):
    said = installed.run(installed.folder / "bin/tutti-export", "model", "model.onnx", code=2).stderr
    assert re.search(r"^tutti-export: .*onnxruntime not installed in .*: pip install .*onnxruntime$", said), said


@pytest.mark.parametrize("program, code", [("tutti", 0), ("tutti-storage", 2)])
def test_a_program_travels_with_its_libraries(installed, program, code, tmp_path):
    """As to nodes that share no folder with the service: in an archive, with lib/ beside it (base/process/packed_program.h)."""
    own = installed.packages / "tutti/bin" / program
    loaded = installed.run(own, LD_TRACE_LOADED_OBJECTS="1").stdout
    (tmp_path / "lib").mkdir()
    grafted = [pathlib.Path(path) for path in re.findall(r"=> (\S*/tutti\.libs/\S+)", loaded)]
    for path in (own, *grafted):
        shutil.copy(path, tmp_path / ("lib" if path in grafted else ""))
    loaded = installed.run(tmp_path / program, LD_TRACE_LOADED_OBJECTS="1").stdout
    assert len(grafted) > 3 and "not found" not in loaded and str(installed.packages) not in loaded and loaded.count(f"{tmp_path}/lib/") == len(grafted)
    done = installed.run(tmp_path / program, "--help", code=code)
    assert program in done.stdout + done.stderr


def test_a_script_for_horovod_runs_on_two_nodes(with_torch, serve, tmp_path):
    service = serve(with_torch)
    shutil.copytree(ROOT / "examples/horovod", tmp_path / "example")
    name = service.submit(tmp_path / "example/job.yml")
    right = [float(share) for share in re.findall(r"([\d.]+) % of 1000 digits on 2 ranks", log_of(service, name, 180))]
    assert len(right) == 4 and right[-1] > 90


def test_the_example_trains_on_two_nodes_and_scores_an_image(with_torch, serve, tmp_path):
    service = serve(with_torch)
    shutil.copytree(ROOT / "examples/cifar10", tmp_path / "example")
    job = tmp_path / "example/job.yml"
    job.write_text(job.read_text().replace("tutti-train ", "tutti-train --max-steps 3 --evaluate-every 0 "))  # ./run trains it whole
    name = service.submit(job)
    assert "resnet20" in log_of(service, name, 600)
    assert service.cli("job", "download", name, "--directory", tmp_path / "results").returncode == 0
    scored = service.cli("score", tmp_path / "example/images/ship.jpg", "--model", tmp_path / "results/outputs/model", "--top", 1)
    assert scored.returncode == 0 and "ship.jpg" in scored.stdout, scored.stderr


def test_pip_brings_what_the_wheels_require(packer, wheels, tmp_path):
    installed = Installed(packer, tmp_path / "environment", [])
    done = subprocess.run([packer, "-m", "pip", "--python", installed.python, "install", "--quiet", wheels["tutti_client"], wheels["tutti"]],
                          capture_output=True, text=True, timeout=300 * PATIENCE)
    assert done.returncode == 0, done.stderr
    installed.run(installed.python, "-c", "import cloudpickle, packaging, tutti.ml, tutti.core, tutti.comm")
