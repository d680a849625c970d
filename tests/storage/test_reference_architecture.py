"""Story: the example that walks Microsoft's reference architecture, whole in the soak, and its parts in the gate."""
import json
import os
import re
import signal
import subprocess

import pytest

from conftest import BIN, PATIENCE, ROOT, processes_with, wait_until
from needs import needs, not_installed, of_root, python_of
from stores import azure_store, needs_program

EXAMPLE = ROOT / "examples/reference-architecture"
IMAGES = sorted((ROOT / "examples/cifar10/images").glob("*.jpg"))


def run(program, *arguments, **options):
    return subprocess.run([EXAMPLE / program, *map(str, arguments)], capture_output=True, text=True, **options)


@pytest.fixture
def photographs(tmp_path):
    """As ImageNet's sample lies, by wnid; the animals' are the lower ones."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    for number in range(20):
        (folder / f"n0144{number:04}_fish.JPEG").write_bytes(IMAGES[number % 10].read_bytes())
        (folder / f"n0400{number:04}_thing.JPEG").write_bytes(IMAGES[number % 10].read_bytes())
    return folder


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "tar"])
def test_photographs_become_folders_and_records_with_one_tenth_held_out(photographs, tmp_path, packed):
    source = photographs
    if packed:
        source = tmp_path / "photographs.tar"
        subprocess.run(["tar", "-cf", source, "-C", photographs, "."], check=True)
    done = run("prepare.py", source, tmp_path / "data")
    assert (done.stdout, done.stderr) == ("36 images to train on and 4 held out, of 2 classes\n", "")
    assert sorted(path.name for path in (tmp_path / "data/folders/val/animal").iterdir()) == ["n01440009_fish.JPEG", "n01440019_fish.JPEG"]
    for split, count in (("train", 36), ("test", 4)):  # the reader checks each record's sums
        told = subprocess.run([BIN / "tutti-data", "verify", tmp_path / "data/tfrecords", "--split", split], capture_output=True, text=True)
        assert told.returncode == 0 and f"{count} images" in told.stdout, (told.stdout, told.stderr)
        stats = subprocess.run([BIN / "tutti-data", "stats", tmp_path / "data/tfrecords", "--split", split], capture_output=True, text=True).stdout
        assert re.search(rf"images a class +{count // 2} +{count // 2} ", stats), stats
    assert (tmp_path / "data/tfrecords/classes.txt").read_text() == "animal\nother\n"


def test_a_set_with_its_own_split_keeps_it(tmp_path):
    for number, image in enumerate(IMAGES):
        folder = tmp_path / "set" / ("val" if number < 3 else "train") / ("even", "odd")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / image.name).write_bytes(image.read_bytes())
    done = run("prepare.py", tmp_path / "set", tmp_path / "data")
    assert done.stdout == "7 images to train on and 3 held out, of 2 classes\n"


@pytest.mark.parametrize("name, said", [
    (None, "there is no {source}"),
    ("cat.jpg", "cat.jpg is neither train/CLASS/NAME.JPEG, val/CLASS/NAME.JPEG nor WNID_NAME.JPEG"),
    ("n01440000_fish.JPEG", "{source} has 1 images to train on and 0 to test with; both are needed"),
    ("train/a/1.jpg val/b/2.jpg", "the classes to train on are a, those to test with b; they must be the same"),
    ("train/a/1.jpg train/a/1.JPEG", "{data}/folders/train/a/1.JPEG is there already: FOLDER must be a new one, and names of images differ by more than "
                                     "their ending")])
def test_a_wrong_source_is_told_in_a_line(tmp_path, name, said):
    source = tmp_path / "source"
    for path in (name or "").split():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes(IMAGES[0].read_bytes())
    done = run("prepare.py", source, tmp_path / "data")
    assert done.returncode == 1 and done.stderr == f"prepare.py: {said.format(source=source, data=tmp_path / 'data')}\n"


def test_a_file_that_is_no_tar_is_told_in_a_line(tmp_path):
    done = run("prepare.py", IMAGES[0], tmp_path / "data")
    assert (done.returncode, done.stderr) == (1, f"prepare.py: {IMAGES[0]} is neither a folder nor a tar\n")


def test_a_chart_has_a_bar_for_each_job_as_high_as_its_speed(tmp_path):
    for name, speed in (("pytorch-images-local", 10), ("pytorch-fake-local", 20), ("tutti-train-images-local", 40)):
        (tmp_path / name).write_text(json.dumps({"metrics": [{"name": "loss", "last": 1}, {"name": "images_per_second", "last": speed}]}))
    names = ["pytorch-images-local", "pytorch-fake-local", "tutti-train-images-local"]
    done = run("chart.py", tmp_path / "chart.svg", *(tmp_path / name for name in names))
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["pytorch", "local", "images", "10.0", "images/s"], ["pytorch", "local", "fake", "20.0", "images/s"],
        ["tutti-train", "local", "images", "40.0", "images/s"]]
    heights = [float(height) for height in re.findall(r'<rect x="\d+" y="[\d.]+" width="19" height="([\d.]+)"', (tmp_path / "chart.svg").read_text())]
    assert heights == [55, 110, 220]
    (tmp_path / names[0]).write_text('{"metrics": []}')
    done = run("chart.py", tmp_path / "chart.svg", tmp_path / names[0])
    assert done.returncode == 1 and done.stderr == f"chart.py: {tmp_path / names[0]} has no metric images_per_second\n"


@needs_program
def test_a_container_is_made_and_reached_by_its_signature_alone(start_service, tmp_path, monkeypatch):
    certificate = tmp_path / "azurite.pem", tmp_path / "azurite.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-out", certificate[0], "-keyout", certificate[1]], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with azure_store(tmp_path, certificate=certificate) as store:
        for _ in range(2):  # what is there is left as it is
            made = run("account.py", store.url, tmp_path, "images=racwdl", "scripts=rl")
            assert made.returncode == 0, made.stderr
        text = (tmp_path / "images.yml").read_text()
        assert "sas_token" in text and "account_key" not in text and (tmp_path / "images.yml").stat().st_mode & 0o77 == 0
        service = start_service()
        assert service.cli("datastore", "create", "--file", tmp_path / "images.yml").returncode == 0
        listed = service.cli("storage", "ls", "azureml://datastores/images/paths/")
        assert listed.returncode == 0, listed.stderr
        other = text.replace("container_name: images", "container_name: scripts").replace("name: images", "name: other", 1)
        (tmp_path / "other.yml").write_text(other)
        assert service.cli("datastore", "create", "--file", tmp_path / "other.yml").returncode == 0
        refused = service.cli("storage", "ls", "azureml://datastores/other/paths/")
        assert refused.returncode != 0 and "credentials" in refused.stderr, refused.stderr


@pytest.mark.parametrize("job", sorted(path.name for path in (EXAMPLE / "jobs").iterdir()))
def test_its_jobs_lack_nothing_but_what_the_walk_makes_first(service, job):
    done = service.cli("job", "validate", EXAMPLE / "jobs" / job, "--offline")
    made = r'there is no datastore "(scripts|photos)"|environment "azureml:reference-\w+@latest" is not known here|^not asked: '
    told = [line for line in done.stderr.splitlines() if line.strip()]
    assert told and [line for line in told if not re.search(made, line)] == []
    assert done.returncode == (0 if job == "tutti-train.yml" else 2)


@pytest.mark.parametrize("arguments, said", [
    (["--only", "caffe"], "walk: --only: there is no training caffe; there are tutti-train, pytorch, keras and tensorflow"),
    (["--only", "pytorch,check-images"], "walk: --only: there is no training check-images; there are tutti-train, pytorch, keras and tensorflow"),
    (["--only", ""], "walk: --only: there is no training ''; there are tutti-train, pytorch, keras and tensorflow"),
    (["--only"], "walk: --only wants a value; --help says which"),
    (["--images", "/nowhere.tar"], "realpath: /nowhere.tar: No such file or directory")])
def test_a_wrong_option_is_told_in_a_line(arguments, said):
    done = run("walk", *arguments)
    assert done.returncode == 1 and done.stderr == f"{said}\n"


@needs_program
@pytest.mark.needs(not_installed("ganesha.nfsd", "podman", "docker-registry", "busybox", "openssl", "zstd"))
@pytest.mark.needs(of_root("NFS-Ganesha"))
def test_all_its_steps_and_after_a_kill_the_rest_of_them(tmp_path):
    """The whole of the sample of ImageNet, where TUTTI_IMAGENET_SAMPLE names it, and all four trainings; else a smaller set and two of them."""
    python_of("stores")
    folder, sample = tmp_path / "walk", os.environ.get("TUTTI_IMAGENET_SAMPLE")
    only = "tutti-train,pytorch,keras,tensorflow" if sample else "tutti-train,pytorch"
    walk = [EXAMPLE / "walk", "--folder", folder, "--only", only, *(["--images", sample] if sample else [])]

    def state_of(job):
        return subprocess.run(["sh", "-c", f". {folder}/environment; tutti job show {job} -o json"], capture_output=True, text=True).stdout

    def under_way():
        """A job after the first training of images."""
        lines = (tmp_path / "first").read_text()
        return re.search(r"Job tutti-train-fake-local.*Running ", lines, re.DOTALL)

    try:
        with open(tmp_path / "first", "w") as out:
            first = subprocess.Popen(walk, stdout=out, stderr=out, start_new_session=True)
        wait_until(lambda: first.poll() is not None or under_way(), 900, lambda: (tmp_path / "first").read_text()[-3000:])
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        assert under_way(), (tmp_path / "first").read_text()[-3000:]
        second = subprocess.run(walk, capture_output=True, text=True, timeout=1800 * PATIENCE)
        assert second.returncode == 0, (second.stdout[-3000:], second.stderr[-3000:])
        assert "1. Scripts" not in second.stdout and "Job tutti-train-images-local" not in second.stdout
        assert "tutti job stream tutti-train-fake-local" in second.stderr and "name=tutti-train-fake-local" not in second.stderr
        trainings = [f"{training}-{data}-" for training in only.split(",") for data in ("images", "fake")]
        for job in ["check-images", "scored", *(f"{training}local" for training in trainings)]:
            assert second.stdout.count(f" {job}/\n") == 2, second.stdout[-3000:]  # its results and its logs
        right = [tuple(map(int, found)) for found in re.findall(r": (\d+) of (\d+) are right", second.stdout)]
        classes = 2 if sample else 10
        assert len(right) == classes and sum(one for one, _ in right) > 1.2 / classes * sum(all for _, all in right), second.stdout[-3000:]
        assert (folder / "throughput.svg").read_text().count("<title>") == len(re.findall(r"^  \S+ +(?:local|pool) .+images/s$", second.stdout, re.MULTILINE))
        assert len(re.findall(r"^  \S+ +local .+images/s$", second.stdout, re.MULTILINE)) == len(trainings)
        assert '"Completed"' in state_of("scored")
        third = subprocess.run(walk, capture_output=True, text=True, timeout=300)
        assert third.returncode == 0 and "6. Job" not in third.stdout, third.stderr
        other = subprocess.run([*walk[:3], "--images", ROOT / "examples"], capture_output=True, text=True)
        assert other.returncode == 1 and "give another --folder for other photographs" in other.stderr
    finally:
        stopped = subprocess.run([*walk[:3], "--stop"], capture_output=True, text=True)
    assert stopped.returncode == 0, stopped.stderr
    assert processes_with("TUTTI_HOME", f"{folder}/home") == []
    assert str(folder) not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert str(folder) not in open("/proc/mounts").read()
