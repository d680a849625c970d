#!/usr/bin/env python3
"""How fast an epoch of shards is read from a store by PyTorch's DataLoader: by tutti.data, MosaicML Streaming, WebDataset and fsspec (s3fs).

The store is moto in a network namespace of its own, behind a link of a given speed; --link 0: on loopback. The bound is a plain reader, as in measure.py.
What is read is bytes alone, without decoding, so that the link and the reader's own work are compared. Each contender reads two epochs; the contenders
take turns. Needs root for the namespace, and tc.

    benchmarks/storage/streaming.py [--link 1000] [--rounds 3] [--shards 32] [--megabytes 16] [--workers 2] [--build build]
"""
import argparse
import http.client
import io
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from urllib.parse import urlsplit

import setting

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["mosaicml-streaming==0.13.0", "webdataset==1.0.2", "s3fs", "boto3"]
RANGE = 8 << 20
S3_SIGNED = "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a-secret-key", "AWS_DEFAULT_REGION": "us-east-1"}

READ = '''
import json, os, resource, sys, time
kind, shards, workers, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
import torch

def bytes_of(sample):
    return sum(len(value) for value in sample.values() if isinstance(value, bytes))

def fsspec_samples(number, count):
    import fsspec, tarfile
    files = fsspec.filesystem("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    for shard in range(number, shards, count):
        with files.open(f"sets/tar/train-{shard:06}.tar", "rb", block_size=8 << 20) as raw, tarfile.open(fileobj=raw, mode="r|") as archive:
            for member in archive:
                yield len(archive.extractfile(member).read())

class Fsspec(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        return fsspec_samples(worker.id, worker.num_workers)

def dataset():
    if kind == "tutti":
        from tutti.data import ShardStream
        return ShardStream("s3://sets/tar", "train", batch_size=64, drop_last=False, transform=bytes_of, cache=folder)
    if kind == "local":
        from tutti.data import ShardStream
        return ShardStream(os.environ["LOCAL_SHARDS"], "train", batch_size=64, drop_last=False, transform=bytes_of)
    if kind == "mosaic":
        from streaming import StreamingDataset
        class Bytes(StreamingDataset):
            def __getitem__(self, index):
                return bytes_of(super().__getitem__(index))
        return Bytes(remote="s3://sets/mds", local=folder, shuffle=True, batch_size=64)
    if kind == "webdataset":
        import boto3, webdataset
        client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
        urls = [client.generate_presigned_url("get_object", {"Bucket": "sets", "Key": f"tar/train-{shard:06}.tar"}) for shard in range(shards)]
        return webdataset.WebDataset([f"pipe:curl -s '{url}'" for url in urls], shardshuffle=100, nodesplitter=webdataset.split_by_node).shuffle(1000).map(bytes_of)
    return Fsspec()

began = time.monotonic()
loader = torch.utils.data.DataLoader(dataset(), batch_size=64, num_workers=workers, persistent_workers=True)
epochs = []
for epoch in range(2):
    total, first = 0, None
    for batch in loader:
        first = first or time.monotonic() - began
        total += int(batch.sum())
    epochs.append([time.monotonic() - began, total, first])
    began = time.monotonic()
print(json.dumps(epochs))
sys.stdout.flush()
os._exit(0)
'''


def run(*command, **options):
    subprocess.run([str(word) for word in command], check=True, **options)


def make_shards(folder, options):
    """Tar shards with an index; of images of 100 kB."""
    lines = ["tutti-index 1"]
    for shard in range(options.shards):
        path = folder / f"train-{shard:06}.tar"
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
            for number in range(options.megabytes * 10):
                for extension, content in (("jpg", os.urandom(100_000)), ("cls", b"1")):
                    member = tarfile.TarInfo(f"{shard:06}{number:06}.{extension}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        lines.append(f"shard {path.name} {path.stat().st_size} {options.megabytes * 10}")
    (folder / "train-index.txt").write_text("\n".join(lines) + "\n")
    (folder / "classes.txt").write_text("a\nb\n")


MDS = '''
import glob, sys
sys.path.insert(0, sys.argv[3])
from streaming import MDSWriter
from tutti.data import ShardStream
with MDSWriter(out=sys.argv[2], columns={"jpg": "bytes", "cls": "bytes"}, size_limit=int(sys.argv[4])) as writer:
    for sample in ShardStream(sys.argv[1], "train", batch_size=1, shuffle=False, drop_last=False):
        writer.write({"jpg": sample["jpg"], "cls": sample["cls"]})
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", type=int, default=1000, help="Mbit/s; 0: loopback")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--megabytes", type=int, default=16, help="of each, about")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="tutti,local,mosaic,webdataset,fsspec")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    setting.use(options.build)
    import machine
    from behind_link import behind
    from conftest import free_port
    from stores import S3, environment, running
    torch = subprocess.run([ROOT / "tools/torch-environment"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    python = subprocess.run([ROOT / "tools/python-environment", "--on", torch, "streaming-1", "readers of shards from PyPI", *PACKAGES],
                            stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="tutti-streaming.") as scratch, behind(options.link) as (inside, host):
        folder = pathlib.Path(scratch)
        shards, mds = folder / "shards", folder / "mds"
        shards.mkdir()
        make_shards(shards, options)
        variables = {**os.environ, **KEYS, "PYTHONPATH": str(ROOT / "python"), "LOCAL_SHARDS": str(shards),
                     "TUTTI_STORAGE_PROGRAM": str(options.build / "bin/tutti-storage"), "TQDM_DISABLE": "1"}
        run(python, "-c", MDS, shards, mds, ROOT / "python", options.megabytes << 20, env=variables, stdout=subprocess.DEVNULL)
        port = free_port()
        url = f"http://{host}:{port}"
        server = [*inside, environment().parent / "moto_server", "-H", host, "-p", str(port)]
        with running(server, url, folder / "moto.log"):
            store = S3(url)
            store.make_container("sets")
            for kind, files in (("tar", shards), ("mds", mds)):
                for file in files.iterdir():
                    store.put("sets", f"{kind}/{file.name}", file.read_bytes())
            variables |= {"AWS_ENDPOINT_URL": url, "S3_ENDPOINT_URL": url, "AWS_EC2_METADATA_DISABLED": "true"}
            total = sum(file.stat().st_size for file in shards.iterdir())
            print(machine.heading())
            print(f"\n{options.shards} shards, {total / 1e6:.0f} MB, {options.workers} workers, link of {options.link or 'loopback'} Mbit/s\n")
            measure(options, python, variables, url, shards, folder, total)


def plain_read(url, sizes):
    """Seconds in which all shards come by ranges of 8 MiB at 16 connections, and are kept nowhere."""
    server = urlsplit(url)
    pieces = [(name, at, min(RANGE, size - at)) for name, size in sizes for at in range(0, size, RANGE)]
    lock = threading.Lock()

    def work():
        connection = http.client.HTTPConnection(server.hostname, server.port, timeout=60)
        while True:
            with lock:
                if not pieces:
                    return
                name, at, size = pieces.pop(0)
            connection.request("GET", f"/sets/tar/{name}", headers={"Range": f"bytes={at}-{at + size - 1}", "Authorization": S3_SIGNED})
            if len(connection.getresponse().read()) != size:
                raise SystemExit(f"{name}: not {size} bytes")
    threads = [threading.Thread(target=work) for _ in range(16)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


def measure(options, python, variables, url, shards, folder, total):
    contenders = options.only.split(",")
    results = {name: [] for name in contenders}
    bounds = []
    for number in range(options.rounds):
        bounds.append(plain_read(url, [(file.name, file.stat().st_size) for file in sorted(shards.glob("*.tar"))]))
        for name in contenders:
            target = folder / f"cache-{name}"
            shutil.rmtree(target, ignore_errors=True)
            done = subprocess.run([python, "-c", READ, name, str(options.shards), str(options.workers), str(target)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env=variables)
            if done.returncode:
                print(f"{name} failed: {done.stderr[-800:]}", file=sys.stderr)
                continue
            results[name].append(json.loads(done.stdout.splitlines()[-1]))
    print("| | first batch, s | first epoch, MB/s | of the bound | second epoch, MB/s |\n| --- | --- | --- | --- | --- |")
    print(f"| plain reader | | {total / 1e6 / statistics.median(bounds):.0f} | 1 | |")
    for name, runs in results.items():
        if not runs:
            continue
        first = statistics.median(run[0][0] for run in runs)
        ratios = sorted(limit / run[0][0] for run, limit in zip(runs, bounds))
        print(f"| {name} | {statistics.median(run[0][2] for run in runs):.2f} | {total / 1e6 / first:.0f} | {statistics.median(ratios):.2f} "
              f"({ratios[0]:.2f} to {ratios[-1]:.2f}) | {total / 1e6 / statistics.median(run[1][0] for run in runs):.0f} |")


if __name__ == "__main__":
    main()
