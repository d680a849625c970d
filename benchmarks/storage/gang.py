#!/usr/bin/env python3
"""How much longer four nodes that fetch the same data at the same time take than one alone, and how much more the store sends.

Each node, and the store (versitygw), has a network namespace and a link of its own, of the given speed both ways. Needs root, and tc. One and four take
turns, and ratios are taken round by round. The bound is the link: what one takes by the clock beside its bytes at the link's speed.

    benchmarks/storage/gang.py [--link 1000] [--rounds 3] [--nodes 4] [--objects 8] [--megabytes 256] [--connections 16] [--build build]
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import setting

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fetch(network, store, folder, nodes, connections):
    """Has them fetch at the same time; returns the seconds that it took, the processors' seconds of all, and what the store has sent."""
    from stores import PROGRAM, request
    sent, began = network.sent_by("store"), time.monotonic()
    programs = []
    for number, node in enumerate(nodes):
        shutil.rmtree(folder / node, ignore_errors=True)
        peers = {"node": number, "addresses": [network.address[name] for name in nodes], "port": 7000, "token": "the job's"}
        program = subprocess.Popen(network.within(node, PROGRAM), stdin=subprocess.PIPE, stdout=open(folder / f"{node}.out", "w"), text=True)
        program.stdin.write(request("fetch", store.place("sets", "data"), store.credentials, folder=str(folder / node), connections=connections,
                                    **({"peers": peers} if len(nodes) > 1 else {})))
        program.stdin.close()
        programs.append(program)
    used, failures = 0, []
    for node, program in zip(nodes, programs):  # all of them are waited for
        _, status, took = os.wait4(program.pid, 0)
        used += took.ru_utime + took.ru_stime
        last = (folder / f"{node}.out").read_text().splitlines()[-1:]
        if status != 0 or "done" not in json.loads("".join(last) or "{}"):
            failures.append(f"{node} failed: {last}")
    if failures:
        raise SystemExit("\n".join(failures))
    return time.monotonic() - began, used, network.sent_by("store") - sent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", type=int, default=1000, help="Mbit/s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--objects", type=int, default=8)
    parser.add_argument("--megabytes", type=int, default=256, help="the size of each")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    setting.use(options.build)
    import machine
    from gateway import s3_gateway
    from shaped_network import Network
    tools = setting.peers()
    nodes = [f"n{number + 1}" for number in range(options.nodes)]
    total = options.objects * options.megabytes << 20
    with tempfile.TemporaryDirectory(prefix="tutti-gang.") as scratch, Network(["store", *nodes]) as network:
        folder = pathlib.Path(scratch)
        with s3_gateway(tools, folder, network.address["store"], network.within("store")) as store:
            data = store.folder / "sets/data"
            data.mkdir(parents=True)
            for number in range(options.objects):
                (data / f"{number}.bin").write_bytes(os.urandom(1 << 20) * options.megabytes)
            network.shape(options.link)
            print(machine.heading())
            print(f"\n{options.objects} objects, {total / 1e6:.0f} MB, links of {options.link} Mbit/s\n")
            rounds = [(fetch(network, store, folder, nodes[:1], options.connections), fetch(network, store, folder, nodes, options.connections))
                      for _ in range(options.rounds)]
    print("| | s | MB/s into each | processor s per GB and node | the store sent |\n| --- | --- | --- | --- | --- |")
    for name, at, count in (("one node", 0, 1), (f"{options.nodes} nodes", 1, options.nodes)):
        seconds, used, sent = (statistics.median(taken[at][field] for taken in rounds) for field in range(3))
        print(f"| {name} | {seconds:.1f} | {total / 1e6 / seconds:.0f} | {used / count / total * 1e9:.2f} | {sent / total:.2f} times |")
    ratios = sorted(four[0] / one[0] for one, four in rounds)
    print(f"\n{options.nodes} nodes take {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) times as long as one.")


if __name__ == "__main__":
    main()
