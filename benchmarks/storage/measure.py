#!/usr/bin/env python3
"""How fast a container comes into a folder, and what processor time that takes, by tutti-storage, by rclone and, as the bound, by a plain reader.

The store is Azurite on this machine, so that what is compared is what a client costs: the store's own work takes the same processors. The plain
reader is a Python program with as many threads, which reads ranges of 8 MiB, and small objects whole, without credentials, and keeps nothing. The
contenders take turns, and ratios are taken round by round.

    benchmarks/storage/measure.py [--rounds 5] [--connections 16] [--large 2] [--megabytes 256] [--small 2000] [--build build]
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
from urllib.parse import quote, urlsplit

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANGE = 8 << 20
READER = "--read"


def read_all(arguments):
    """The plain reader: of a list of [path, bytes] at an address, with so many threads."""
    url, listing, connections = arguments
    server = urlsplit(url)
    pieces = [(path, at, min(RANGE, size - at)) for path, size in json.loads(pathlib.Path(listing).read_text()) for at in range(0, max(size, 1), RANGE)]
    lock = threading.Lock()

    def work():
        connection = http.client.HTTPConnection(server.hostname, server.port, timeout=60)
        buffer = bytearray(RANGE)
        while True:
            with lock:
                if not pieces:
                    return
                path, at, size = pieces.pop(0)
            connection.request("GET", f"{server.path}/{quote(path)}", headers={"Range": f"bytes={at}-{at + size - 1}", "x-ms-version": "2021-08-06"})
            answer = connection.getresponse()
            got = 0
            while got < size and (n := answer.readinto(memoryview(buffer)[got:size])):
                got += n
            answer.read()
            if got != size:
                raise SystemExit(f"{path}: {answer.status}, {got} of {size} bytes")
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


def contenders(store, container, listing, folder, connections):
    """What each runs, by its name."""
    from stores import ACCOUNT, PROGRAM, request
    text = request("fetch", store.place(container), store.credentials, folder=str(folder), connections=connections)
    found = {"tutti-storage": lambda: run([PROGRAM], text)}
    if shutil.which("rclone"):
        remote = {"RCLONE_CONFIG_STORE_TYPE": "azureblob", "RCLONE_CONFIG": "/dev/null",
                  "RCLONE_CONFIG_STORE_SAS_URL": f"{store.url}/{ACCOUNT}/{container}?{store.sas(container)}"}
        command = ["rclone", "copy", f"store:{container}", folder, "--transfers", str(connections), "--checkers", str(connections),
                   "--multi-thread-streams", str(connections), "--multi-thread-cutoff", "8M", "--quiet"]
        found["rclone"] = lambda: run(command, environment=remote)
    found["reader"] = lambda: run([sys.executable, __file__, READER, f"{store.url}/{ACCOUNT}/{container}", listing, str(connections)])
    return found


def measure(store, name, objects, options, folder):
    """Rounds of all contenders over one container, and a table of them."""
    store.request("PUT", name, query="restype=container", x_ms_blob_public_access="container")
    for path, content in objects:
        store.put(name, path, content)
    listing = folder / f"{name}.json"
    listing.write_text(json.dumps([[path, len(content)] for path, content in objects]))
    total = sum(len(content) for _, content in objects)
    target = folder / "to"
    runs = contenders(store, name, listing, target, options.connections)
    times = {contender: [] for contender in runs}
    for _ in range(options.rounds):
        for contender, start in runs.items():
            shutil.rmtree(target, ignore_errors=True)
            times[contender].append(start())
    print(f"\n{len(objects)} objects, {total / 1e6:.0f} MB, {options.connections} connections\n")
    print("| | MB/s | objects/s | processor s per GB | time beside the reader: median (quartiles) |\n| --- | --- | --- | --- | --- |")
    for contender, taken in times.items():
        seconds = statistics.median(wall for wall, _ in taken)
        ratios = sorted(wall / reader for (wall, _), (reader, _) in zip(taken, times["reader"]))
        quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        cpu = statistics.median(used for _, used in taken)
        print(f"| {contender} | {total / 1e6 / seconds:.0f} | {len(objects) / seconds:.0f} | {cpu / total * 1e9:.2f} | "
              f"{quartiles[1]:.2f} ({quartiles[0]:.2f} to {quartiles[2]:.2f}) |")


def main():
    if sys.argv[1:2] == [READER]:
        return read_all(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--large", type=int, default=2, help="how many large objects")
    parser.add_argument("--megabytes", type=int, default=256, help="the size of each")
    parser.add_argument("--small", type=int, default=2000, help="how many objects of 10 kB")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    os.environ["TUTTI_BUILD"] = str(options.build)
    os.environ.setdefault("TUTTI_TEST_PATIENCE", "4")
    sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests"), str(ROOT / "tests/storage")]
    import machine
    from stores import azure_store
    with tempfile.TemporaryDirectory(prefix="tutti-storage.") as scratch, azure_store(pathlib.Path(scratch)) as store:
        folder = pathlib.Path(scratch)
        print(machine.heading())
        if options.large:
            measure(store, "large", [(f"{i}", os.urandom(1 << 20) * options.megabytes) for i in range(options.large)], options, folder)
        if options.small:
            measure(store, "small", [(f"{i // 100}/{i}", os.urandom(10000)) for i in range(options.small)], options, folder)


if __name__ == "__main__":
    main()
