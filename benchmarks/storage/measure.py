#!/usr/bin/env python3
"""How fast a container comes into a folder, and what processor time that takes, by tutti-storage, by the peers and, as the bound, by a plain reader.

The store is Azurite, or versitygw for S3, on this machine; --link puts it behind a link of so many Mbit/s, in a network namespace (root). On loopback
what is compared is what a client costs: the store's own work takes the same processors. The plain reader is a Python program with as many threads, which
reads ranges of 8 MiB, and small objects whole, and keeps nothing. Peers are rclone, s5cmd and AzCopy, those of them that read the store (tools/storage-peers).
The contenders take turns, and ratios are taken round by round. The folder lies where the system's temporary files do; TMPDIR names another place.

    benchmarks/storage/measure.py [--store azure] [--link 0] [--rounds 5] [--connections 16] [--large 2] [--megabytes 256] [--small 2000] [--build build]
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

import setting

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANGE = 8 << 20
READER = "--read"
RCLONE = ["--config", "/dev/null", "--multi-thread-cutoff", "8M", "--quiet"]


def read_all(arguments):
    """The plain reader: of a list of [target, bytes] at a server, with so many threads."""
    url, listing, connections = arguments
    server = urlsplit(url)
    pieces = [(target, at, min(RANGE, size - at)) for target, size in json.loads(pathlib.Path(listing).read_text()) for at in range(0, max(size, 1), RANGE)]
    lock = threading.Lock()

    def work():
        connection = http.client.HTTPConnection(server.hostname, server.port, timeout=60)
        buffer = bytearray(RANGE)
        while True:
            with lock:
                if not pieces:
                    return
                target, at, size = pieces.pop(0)
            connection.request("GET", target, headers={"Range": f"bytes={at}-{at + size - 1}", "x-ms-version": "2021-08-06"})
            answer = connection.getresponse()
            got = 0
            while got < size and (n := answer.readinto(memoryview(buffer)[got:size])):
                got += n
            answer.read()
            if got != size:
                raise SystemExit(f"{target}: {answer.status}, {got} of {size} bytes")
    threads = [threading.Thread(target=work) for _ in range(int(connections))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(command, text=None, environment=None):
    """Seconds by the clock, and of the processors by the program."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})
    process.stdin.write((text or "").encode())
    process.stdin.close()
    said = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} failed: {said[-1000:]}")
    return time.monotonic() - began, used.ru_utime + used.ru_stime


def azure_peers(store, container, folder, connections, tools):
    from stores import ACCOUNT
    signature = store.sas(container)
    yield "rclone", ["rclone", "copy", f"store:{container}", folder, *RCLONE, "--transfers", connections, "--checkers", connections,
                     "--multi-thread-streams", connections], {"RCLONE_CONFIG_STORE_TYPE": "azureblob",
                                                              "RCLONE_CONFIG_STORE_SAS_URL": f"{store.url}/{ACCOUNT}/{container}?{signature}"}
    yield "azcopy", [tools / "azcopy", "copy", f"{store.url}/{ACCOUNT}/{container}/*?{signature}", folder, "--from-to", "BlobLocal", "--recursive",
                     "--log-level", "NONE", "--output-level", "quiet", "--skip-version-check"], {
                         "AZCOPY_CONCURRENCY_VALUE": connections, "AZCOPY_LOG_LOCATION": f"{folder}.azcopy", "AZCOPY_JOB_PLAN_LOCATION": f"{folder}.azcopy"}


def s3_peers(store, container, folder, connections, tools):
    keys = {"AWS_ACCESS_KEY_ID": store.credentials["access_key_id"], "AWS_SECRET_ACCESS_KEY": store.credentials["secret_access_key"], "AWS_REGION": "us-east-1"}
    yield "rclone", ["rclone", "copy", f"store:{container}", folder, *RCLONE, "--transfers", connections, "--checkers", connections,
                     "--multi-thread-streams", connections], {
                         **keys, "RCLONE_CONFIG_STORE_TYPE": "s3", "RCLONE_CONFIG_STORE_PROVIDER": "Other", "RCLONE_CONFIG_STORE_ENV_AUTH": "true",
                         "RCLONE_CONFIG_STORE_ENDPOINT": store.url}
    yield "s5cmd", [tools / "s5cmd", "--endpoint-url", store.url, "--numworkers", connections, "--log", "error", "cp", "--concurrency", connections,
                    "--part-size", "8", f"s3://{container}/*", f"{folder}/"], keys


def contenders(store, container, listing, folder, options):
    """What each runs, by its name."""
    from stores import PROGRAM, request
    connections = str(options.connections)
    text = request("fetch", store.place(container), store.credentials, folder=str(folder), connections=options.connections)
    found = {"tutti-storage": lambda: run([PROGRAM], text)}
    peers = azure_peers if options.store == "azure" else s3_peers
    newer = options.tools / "rclone"
    for name, command, environment in peers(store, container, folder, connections, options.tools):
        if command[0] == "rclone" and newer.exists():
            command[0] = newer
        if shutil.which(command[0]):
            found[name] = lambda command=command, environment=environment: run(command, environment=environment)
        else:
            print(f"{name} is not here", file=sys.stderr)
    found["reader"] = lambda: run([sys.executable, __file__, READER, store.url, listing, connections])
    return found


def fill(store, container, objects):
    """Puts them there; returns what a reader without keys asks for."""
    from stores import ACCOUNT, environment
    if store.kind != "s3":
        store.request("PUT", container, query="restype=container", x_ms_blob_public_access="container")
        for path, content in objects:
            store.put(container, path, content)
        return [f"/{ACCOUNT}/{container}/{path}" for path, _ in objects]
    for path, content in objects:  # an object is a file of the server's folder
        file = store.folder / container / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return sign(environment(), store, container, [path for path, _ in objects])


SIGN = """import boto3, json, sys
client = boto3.client("s3", endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id=sys.argv[2], aws_secret_access_key=sys.argv[3])
print(json.dumps([client.generate_presigned_url("get_object", {"Bucket": sys.argv[4], "Key": key})[len(sys.argv[1]):] for key in json.load(sys.stdin)]))"""


def sign(python, store, container, paths):
    keys = store.credentials
    return json.loads(subprocess.run([python, "-c", SIGN, store.url, keys["access_key_id"], keys["secret_access_key"], container],
                                     input=json.dumps(paths), stdout=subprocess.PIPE, text=True, check=True).stdout)


def measure(store, name, objects, options, folder):
    """Rounds of all contenders over one container, and a table of them."""
    targets = fill(store, name, objects)
    listing = folder / f"{name}.json"
    listing.write_text(json.dumps([[target, len(content)] for target, (_, content) in zip(targets, objects)]))
    total = sum(len(content) for _, content in objects)
    target = folder / "to"
    runs = contenders(store, name, listing, target, options)
    times = {contender: [] for contender in runs}
    for _ in range(options.rounds):
        for contender, start in runs.items():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            os.sync()  # what the one before has written is not this one's to wait for
            times[contender].append(start())
            kept = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
            if contender != "reader" and kept < total:
                raise SystemExit(f"{contender} brought {kept} of {total} bytes")
    print(f"\n{len(objects)} objects, {total / 1e6:.0f} MB, {options.connections} connections\n")
    print("| | MB/s | objects/s | processor s per GB | time beside the reader: median (quartiles) |\n| --- | --- | --- | --- | --- |")
    for contender, taken in times.items():
        seconds = statistics.median(wall for wall, _ in taken)
        ratios = sorted(wall / reader for (wall, _), (reader, _) in zip(taken, times["reader"]))
        quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        cpu = statistics.median(used for _, used in taken)
        print(f"| {contender} | {total / 1e6 / seconds:.0f} | {len(objects) / seconds:.0f} | {cpu / total * 1e9:.2f} | "
              f"{quartiles[1]:.2f} ({quartiles[0]:.2f} to {quartiles[2]:.2f}) |")


def store_of(options, folder, inside, host):
    from gateway import s3_gateway
    from stores import azure_store
    return azure_store(folder, host, inside) if options.store == "azure" else s3_gateway(options.tools, folder, host, inside)


def main():
    if sys.argv[1:2] == [READER]:
        return read_all(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=["azure", "s3"], default="azure")
    parser.add_argument("--link", type=int, default=0, help="Mbit/s; 0: loopback")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--large", type=int, default=2, help="how many large objects")
    parser.add_argument("--megabytes", type=int, default=256, help="the size of each")
    parser.add_argument("--small", type=int, default=2000, help="how many objects of 10 kB")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    setting.use(options.build)
    import machine
    from behind_link import behind
    options.tools = setting.peers()
    with (tempfile.TemporaryDirectory(prefix="tutti-storage.") as scratch, behind(options.link) as (inside, host),
          store_of(options, pathlib.Path(scratch), inside, host) as store):
        folder = pathlib.Path(scratch)
        print(machine.heading())
        if options.large:
            measure(store, "large", [(f"{i}", os.urandom(1 << 20) * options.megabytes) for i in range(options.large)], options, folder)
        if options.small:
            measure(store, "small", [(f"{i // 100}/{i}", os.urandom(10000)) for i in range(options.small)], options, folder)


if __name__ == "__main__":
    main()
