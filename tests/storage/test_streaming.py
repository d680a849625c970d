"""Story: a training reads its shards from a store as they come: counted at the store, over what goes wrong there, and from PyTorch and fsspec too."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from conftest import BIN, PATIENCE, ROOT, free_port, wait_until
from needs import needs, python_of
from stores import Proxy, needs_program, s3_store

pytestmark = [needs_program, needs("" if (BIN / "tutti-train").exists() else "tutti-train was not built")]
IMAGES = 1024  # of 12 kB each
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a-secret-key", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """A folder of small shards."""
    folder = tmp_path_factory.mktemp("shards")
    subprocess.run([BIN / "tutti-data", "pack", f"synthetic:{IMAGES}x64x10", folder, "--shard-size", "1", "--shuffle", "1"], check=True, stdout=subprocess.DEVNULL)
    assert len(list(folder.glob("train-*.tar"))) > 8
    return folder


@pytest.fixture
def store(tmp_path, shards):
    with s3_store(tmp_path) as store:
        store.proxy = Proxy(store.url)
        store.make_container("sets")
        for file in shards.iterdir():
            store.put("sets", f"cifar/{file.name}", file.read_bytes())
        yield store
        store.proxy.close()


@pytest.fixture
def variables(tmp_path, store):
    """What a reader's processes are given: the store behind the proxy, and a cache of this story's own. What serves it is ended at last."""
    values = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": store.proxy.url, "TUTTI_DATA_CACHE": str(tmp_path / "cache"),
              "TUTTI_STORAGE_PROGRAM": str(BIN / "tutti-storage")}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        values.pop(name, None)
    yield values
    kill_programs(tmp_path / "cache")


def programs(cache):
    """The processes that serve out of that cache."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "tutti-storage stream" in line and str(cache) in line]


def kill_programs(cache):
    """Returns how many there were. Each ends by itself soon after its last reader."""
    killed = 0
    for program in programs(cache):
        with contextlib.suppress(ProcessLookupError):
            os.kill(program, signal.SIGKILL)
            killed += 1
    return killed


def start(variables, output, *more, data="s3://sets/cifar", rank=0, world=1, port=None):
    own = dict(variables)
    if world > 1:
        own |= {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [BIN / "tutti-train", "--model", "resnet20", "--input-size", "8", "--data", data, "--batch", "64", "--output", output, "--evaluate-every", "0",
               "--mixed-shards", "4", *map(str, more)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own)


def finish(process, code=0):
    out, err = process.communicate(timeout=300 * PATIENCE)
    assert process.returncode == code, (process.returncode, out[-2000:], err[-2000:])
    return out, err


def train(*arguments, code=0, **options):
    return finish(start(*arguments, **options), code)


def weights(output):
    return hashlib.sha256((output / "model/model.safetensors").read_bytes()).hexdigest()


def bytes_of(shards, pattern="*"):
    return sum(file.stat().st_size for file in shards.glob(pattern))


def test_the_set_comes_once_for_all_ranks_and_epochs_and_the_next_run_asks_for_nothing(store, shards, variables, tmp_path):
    port = free_port()
    ranks = [start(variables, tmp_path / "two", "--epochs", "2", rank=rank, world=2, port=port) for rank in range(2)]
    for rank in ranks:
        finish(rank)
    assert store.proxy.sent < 1.1 * bytes_of(shards) + 200_000, "two ranks, two epochs"
    before = store.proxy.sent
    train(variables, tmp_path / "one", "--epochs", "2")
    assert store.proxy.sent - before < 100_000, "a list, and versions of young objects"


def test_a_resumed_run_goes_on_in_the_samplers_order(variables, tmp_path):
    train(variables, tmp_path / "whole", "--epochs", "2")
    train(variables, tmp_path / "parts", "--epochs", "2", "--checkpoint-every-steps", "5", "--keep-checkpoints", "9")
    again = tmp_path / "again"
    train(variables, again, "--epochs", "2", "--resume", tmp_path / "parts/checkpoints/step-00000005")
    assert weights(again) == weights(tmp_path / "whole") == weights(tmp_path / "parts")


def test_the_first_step_begins_before_the_data_are_there_and_an_epoch_may_be_larger_than_the_disk(store, shards, variables, tmp_path):
    store.proxy.bytes_per_second = 5_000_000
    disk = 12  # MiB, of 25
    process = start(variables, tmp_path / "out", "--epochs", "1", "--data-disk", disk, "--mixed-shards", "2")
    metrics = tmp_path / "out/metrics.jsonl"
    wait_until(lambda: metrics.exists() and '"step"' in metrics.read_text(), 60, "a step")
    assert store.proxy.sent < 0.7 * bytes_of(shards), "it trains while the rest comes"
    largest = 0

    def on_disk():
        nonlocal largest
        listed = subprocess.run(["du", "-sb", tmp_path / "cache"], stdout=subprocess.PIPE, text=True).stdout
        largest = max(largest, int(listed.split()[0]) if listed else 0)
        return process.poll() is not None
    wait_until(on_disk, 300, "the end")
    finish(process)
    assert largest < (disk + 1.5) * (1 << 20)


def test_a_program_that_is_killed_is_started_anew(store, variables, tmp_path):
    store.proxy.stop_after(2_000_000)
    process = start(variables, tmp_path / "out", "--epochs", "1")
    for _ in range(3):
        wait_until(store.proxy.has_stopped, 60, "it has come so far")
        assert process.poll() is None
        wait_until(lambda: kill_programs(tmp_path / "cache"), 60, "a program that runs again")
        store.proxy.stop_after(3_000_000)
    store.proxy.go_on()
    finish(process)


def test_a_store_that_is_away_for_a_while_holds_the_training_up_and_no_more(store, variables, tmp_path):
    store.proxy.stop_after(3_000_000)
    process = start(variables, tmp_path / "out", "--epochs", "1")
    wait_until(store.proxy.has_stopped, 60, "some shards")
    store.proxy.is_away = True
    log = tmp_path / "out/metrics.jsonl"
    held = [None]

    def stands_still():
        size = log.stat().st_size if log.exists() else 0
        still, held[0] = size == held[0], size
        return still
    wait_until(stands_still, 60, "a training that waits")
    assert process.poll() is None
    store.proxy.go_on()
    store.proxy.is_away = False
    finish(process)


def test_what_cannot_be_had_is_one_line(store, shards, variables, tmp_path):
    def line(code=2, data="s3://sets/cifar", more=(), **changed):
        _, err = train({**variables, **changed}, tmp_path / "none", "--epochs", "1", *more, data=data, code=code)
        [said] = [text for text in err.splitlines() if text.startswith("tutti-train: ")]
        kill_programs(tmp_path / "cache")  # the next one has other credentials
        return said

    assert "nothing is at this path" in line(data="s3://sets/nowhere")
    assert "no such container or bucket" in line(data="s3://nowhere/cifar")
    assert "no address of a store" in line(data="ftp://sets/cifar")
    assert "mode: direct" in line(data="azureml://datastores/sets/paths/cifar", TUTTI_HOME=str(tmp_path / "no-service"))
    assert "TUTTI_STORAGE_PROGRAM" in line(code=1, TUTTI_STORAGE_PROGRAM="/nowhere/tutti-storage")
    store.request("DELETE", "/sets/cifar/train-000003.tar")
    said = line()
    assert "train-000003.tar" in said and "is not there" in said
    store.put("sets", "cifar/train-000003.tar", (shards / "train-000003.tar").read_bytes())
    store.request("DELETE", "/sets/cifar/train-index.txt")
    assert "tutti-data index" in line()


def test_a_wrong_key_is_one_line_without_the_key(store, variables, tmp_path):
    from stores import environment
    store.ask_for_keys(environment())
    _, err = train({**variables, "AWS_SECRET_ACCESS_KEY": "a-wrong-secret"}, tmp_path / "none", "--epochs", "1", code=2)
    [said] = [text for text in err.splitlines() if text.startswith("tutti-train: ")]
    assert 'bucket "sets"' in said and "a-wrong-secret" not in err, said


def test_imagenets_recipe_runs_from_a_store(variables, tmp_path):
    example = (ROOT / "examples/imagenet/README.md").read_text()
    [command] = re.findall(r"^tutti-train (.* --data s3://.*)$", example, re.M)
    arguments = command.replace("s3://bucket/shards", "s3://sets/cifar").replace(" --output outputs", "").split()
    run = subprocess.run([BIN / "tutti-train", *arguments, "--output", tmp_path / "out", "--max-steps", "1", "--batch-per-rank", "4", "--input-size", "32"],
                         cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300 * PATIENCE)
    assert run.returncode == 0, run.stderr[-2000:]
    assert '"event":"result"' in (tmp_path / "out/metrics.jsonl").read_text().replace(" ", "")


def test_the_cache_says_what_is_streamed(store, variables, tmp_path):
    train(variables, tmp_path / "out", "--epochs", "1")
    listed = subprocess.run([BIN / "tutti", "cache", "list", "-o", "json", "--folder", tmp_path / "cache"], stdout=subprocess.PIPE, text=True, check=True)
    [data] = json.loads(listed.stdout)["data"]
    assert data["state"] == "streamed" and 'bucket "sets"' in data["place"], data


def test_a_job_reads_a_datastore_whose_keys_it_does_not_get(service, write_job, store, shards, tmp_path):
    (tmp_path / "store.yml").write_text(f"name: sets\ntype: s3\nbucket_name: sets\nendpoint: {store.proxy.url}\nregion: us-east-1\n"
                                        "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0
    command = ("tutti-train --model resnet20 --input-size 8 --data ${{inputs.data}} --batch 64 --epochs 1 --evaluate-every 0 --mixed-shards 4 --output outputs; "
               "code=$?; env | grep -c a-secret-key; exit $code")
    data = {"type": "uri_folder", "path": "azureml://datastores/sets/paths/cifar/", "mode": "direct"}
    store.proxy.stop_after(3_000_000)
    name = service.submit(write_job(command, nodes=2, distribution="mpi", processes=1, inputs={"data": data}))
    wait_until(store.proxy.has_stopped, 120, "some shards")
    cache = pathlib.Path(service.home) / "data"
    assert kill_programs(cache), "who serves it"  # the launcher, which has the keys, starts another
    store.proxy.go_on()
    job = service.wait(name, 300)
    assert job["state"] == "Completed", (job["reason"], service.log_text(name, 0, "stderr"))
    assert "0" in service.log_text(name, 0).splitlines(), "no process of the job has the key"
    wait_until(lambda: not programs(cache), 30, "the end of what served it")
    with_wrong_path = {**data, "path": "azureml://datastores/sets/paths/nowhere/"}
    refused = service.cli("submit", "--file", write_job(command, inputs={"data": with_wrong_path}))
    assert refused.returncode != 0 or service.wait(refused.stdout.split()[0])["state"] == "Failed"


def test_outside_of_a_job_a_datastore_is_read_by_what_the_service_grants(service, store, shards, variables, tmp_path):
    (tmp_path / "store.yml").write_text(f"name: sets\ntype: s3\nbucket_name: sets\nendpoint: {store.proxy.url}\nregion: us-east-1\n"
                                        "credentials: {access_key_id: AKIAEXAMPLE, secret_access_key: a-secret-key}\n")
    assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0
    own = {name: value for name, value in variables.items() if not name.startswith("AWS_")} | {"TUTTI_HOME": str(service.home)}
    address = "azureml://datastores/sets/paths/cifar"
    train(own, tmp_path / "out", "--epochs", "1", data=address)
    assert store.proxy.sent < 1.1 * bytes_of(shards) + 200_000
    read = f"""import sys
sys.path.insert(0, {str(ROOT / "python")!r})
from tutti.data.stream import StreamClient
client = StreamClient({address!r})
print(sum(client.list().values()), len(open(client.get("train-000000.tar"), "rb").read()))"""
    done = subprocess.run([sys.executable, "-c", read], env=own, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.stdout.split() == [str(bytes_of(shards)), str((shards / "train-000000.tar").stat().st_size)], done
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "a-secret-key" not in listed
    kill_programs(tmp_path / "cache")
    log = (tmp_path / "moto.log").read_text()
    assert '"POST / HTTP' in log, "the store's token service was asked for a session"
    _, err = train(own, tmp_path / "none", "--epochs", "1", data="azureml://datastores/set/paths/cifar", code=2)
    [said] = [text for text in err.splitlines() if text.startswith("tutti-train: ")]
    assert 'there is no datastore "set"' in said and "sets" in said, said
    printed = service.cli("storage", "grant", address)
    assert printed.returncode == 0 and "a-secret-key" not in printed.stdout and json.loads(printed.stdout)["expires"] > 0


def test_jobs_of_a_node_share_what_serves_them_where_keys_and_list_are_the_same(start_service, write_job, store, shards, tmp_path):
    """As trials of a sweep do; others, whose keys may do other things or whose list is newer, have their own."""
    service = start_service(nodes=4)
    cache = pathlib.Path(service.home) / "data"

    def create(key):
        (tmp_path / "store.yml").write_text(f"name: sets\ntype: s3\nbucket_name: sets\nendpoint: {store.proxy.url}\nregion: us-east-1\n"
                                            f"credentials: {{access_key_id: AKIAEXAMPLE, secret_access_key: {key}}}\n")
        assert service.cli("datastore", "create", "--file", tmp_path / "store.yml").returncode == 0

    read = f"""
        import pathlib, sys, time
        sys.path.insert(0, {str(ROOT / "python")!r})
        from tutti.data.stream import StreamClient
        client = StreamClient(sys.argv[1])
        files = client.list()
        for path in files:
            client.get(path)
        print(len(files), flush=True)
        while not pathlib.Path({str(tmp_path / "go")!r}).exists():
            time.sleep(0.1)
        """
    data = {"type": "uri_folder", "path": "azureml://datastores/sets/paths/cifar/", "mode": "direct"}

    def lists():
        return sum('"GET /sets?' in line and "list-type=2" in line for line in (tmp_path / "moto.log").read_text().splitlines())

    def begin():
        """A job that has read all, how many files that were, what came from the store for it, and how often it was listed."""
        before, listed = store.proxy.sent, lists()
        name = service.submit(write_job(f"{sys.executable} read.py ${{{{inputs.data}}}}", files={"read.py": read}, inputs={"data": data}))
        wait_until(lambda: service.log_text(name, 0).strip() or service.job(name)["state"] == "Failed", 120, lambda: f"it has read: {service.job(name)}")
        return name, int(service.log_text(name, 0)), store.proxy.sent - before, lists() - listed

    create("a-secret-key")
    count, size = len(list(shards.iterdir())), bytes_of(shards)
    jobs = [begin(), begin()]
    assert [job[1] for job in jobs] == [count, count] and jobs[0][2] > size and jobs[1][2] < size / 10, (jobs, size)
    assert len(programs(cache)) == 1, "one serves both"
    assert jobs[0][3] == jobs[1][3] > 0, "who serves takes the list of the launcher that has started it"
    create("another-key")
    jobs.append(begin())
    assert len(programs(cache)) == 2, "who has other keys is not served by these"
    store.put("sets", "cifar/later.txt", b"later")
    jobs.append(begin())
    assert jobs[-1][1] == count + 1 and len(programs(cache)) == 3, "it has the list of its own beginning"
    (tmp_path / "go").touch()
    for job in jobs:
        assert service.wait(job[0], 60)["state"] == "Completed", service.job(job[0])
    wait_until(lambda: not programs(cache), 60, "the end of what served them")


# PyTorch and fsspec.

@pytest.fixture(scope="module")
def torch():
    """A Python with torch and fsspec, which torch needs."""
    return python_of("torch")


def run_python(python, variables, program, *arguments):
    own = {**variables, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([python, "-c", textwrap.dedent(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own,
                          timeout=300 * PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_pytorchs_loader_gives_each_sample_once_whatever_the_workers_and_goes_on_where_it_was(store, shards, torch, variables):
    found = run_python(torch, variables, """
        import json, torch
        from tutti.data import ShardStream

        def keys(sample):
            assert sample["ppm"][:2] == b"P6" and 0 <= int(sample["cls"]) < 10
            return sample["__key__"]

        def stream(**more):
            return ShardStream("s3://sets/cifar", "train", batch_size=64, transform=keys, mixed_shards=4, **more)

        def batches(of, **more):
            return list(torch.utils.data.DataLoader(of, batch_size=of.batch_size, collate_fn=list, **more))

        one = stream()
        plain = batches(one)
        second = batches(one)
        found = {"samples": one.size, "batches": len(plain), "epoch": one.epoch, "different": sum(len(set(batch)) for batch in plain),
                 "another_order": plain != second, "length": len(torch.utils.data.DataLoader(one, batch_size=64))}
        for workers, context in ((3, "fork"), (2, "spawn")):
            of = stream() if context == "fork" else ShardStream("s3://sets/cifar", "train", batch_size=64, mixed_shards=4)
            loader = torch.utils.data.DataLoader(of, batch_size=64, collate_fn=list, num_workers=workers, multiprocessing_context=context,
                                                 persistent_workers=True)
            read = [[[sample if context == "fork" else sample["__key__"] for sample in batch] for batch in loader] for _ in range(2)]
            found[f"same by {context}"] = read == [plain, second]
        resumed = stream()
        resumed.load_state_dict({"epoch": 1, "batches": 5})
        found["resumed"] = batches(resumed, num_workers=2, multiprocessing_context="fork") == second[5:]
        halves = [batches(ShardStream("s3://sets/cifar", "train", batch_size=32, transform=keys, mixed_shards=4, rank=rank, world_size=2)) for rank in (0, 1)]
        found["ranks"] = [a + b for a, b in zip(*halves)] == plain
        found["both"] = sorted(key for half in halves for batch in half for key in batch) == sorted(key for batch in plain for key in batch)
        print(json.dumps(found))
        """)
    count = found["samples"] // 64
    assert found == {"samples": IMAGES, "batches": count, "epoch": 2, "different": 64 * count, "another_order": True, "length": count, "same by fork": True,
                     "same by spawn": True, "resumed": True, "ranks": True,
                     "both": True}
    assert store.proxy.sent < 1.1 * bytes_of(shards) + 300_000, "once, for all of these"


def test_fsspec_reads_through_the_cache_and_after_a_fork(store, torch, variables):
    store.put("sets", "tables/a.csv", b"x,y\n1,2\n")
    store.put("sets", "tables/deep/b.csv", b"z\n")
    found = run_python(torch, variables, """
        import json, os, fsspec
        from tutti.data.filesystem import register
        register()
        with fsspec.open("tutti://s3://sets/tables/a.csv", "rb") as file:
            whole = file.read().decode()
        files = fsspec.filesystem("tutti", address="s3://sets/tables")
        found = {"whole": whole, "ls": files.ls("", detail=False), "find": sorted(files.find("")), "glob": files.glob("deep/*.csv"),
                 "size": files.size("a.csv"), "part": files.cat_file("a.csv", 2, 5).decode(), "is": [files.isdir("deep"), files.isfile("deep"), files.exists("c")]}
        with files.open("a.csv", "r") as file:
            found["text"] = file.read()
        for error, read in (("none", lambda: files.open("c.csv")), ("writes", lambda: files.open("a.csv", "wb"))):
            try:
                read()
            except OSError as failed:
                found[error] = type(failed).__name__
        reads, writes = os.pipe()
        if os.fork() == 0:
            os.write(writes, files.cat_file("deep/b.csv"))
            os._exit(0)
        found["child"] = os.read(reads, 100).decode()
        found["parent"] = files.cat_file("deep/b.csv").decode()
        print(json.dumps(found))
        """)
    assert found == {"whole": "x,y\n1,2\n", "ls": ["a.csv", "deep"], "find": ["a.csv", "deep/b.csv"], "glob": ["deep/b.csv"], "size": 8, "part": "y\n1",
                     "is": [True, False, False], "text": "x,y\n1,2\n", "none": "FileNotFoundError", "writes": "OSError", "child": "z\n", "parent": "z\n"}


def test_the_pages_example_runs(store, torch, variables):
    page = (ROOT / "docs/data/streaming.md").read_text()
    example = re.search(r"## PyTorch\n```python\n(.*?)```", page, re.S)[1].replace("s3://bucket/shards", "s3://sets/cifar").replace('"jpg"', '"ppm"')
    found = run_python(torch, variables, example + "\nimport json\nprint(json.dumps([stream.epoch, step + 1, state]))\n")
    steps = IMAGES // 64
    assert found == [2, steps, {"epoch": 2, "batches": 0}], found


def test_a_hit_is_there_in_a_millisecond(store, torch, variables):
    """The quickest of many: the others have waited for a processor that something else had."""
    milliseconds = run_python(torch, variables, """
        import json, time
        from tutti.data import StreamClient
        client = StreamClient("s3://sets/cifar")
        client.get("train-000000.tar")
        times = []
        for _ in range(200):
            began = time.perf_counter()
            with open(client.get("train-000000.tar"), "rb", buffering=0) as file:
                file.read(1)
            times.append(1000 * (time.perf_counter() - began))
        print(json.dumps(min(times)))
        """)
    assert milliseconds < 1 * PATIENCE, milliseconds
