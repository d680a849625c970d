"""Story: four nodes fetch the same data at the same time, over links as slow as the store's: each byte comes from the store about once, and all have all of
it long before the store could have sent it to each. Each node, and the store, has a network namespace and a link of its own."""
import contextlib
import hashlib
import json
import os
import subprocess
import time

import pytest

from conftest import PATIENCE
from needs import needs, not_installed, of_root
from shaped_network import Network
from stores import PROGRAM, S3, environment, needs_program, request, running

pytestmark = [needs_program, needs(of_root("making network namespaces") or not_installed("ip", "tc"))]
MEGABYTE = 1 << 20
LINK = 160 / min(PATIENCE, 4)  # Mbit/s: the links bound what is fetched also where much else runs, and not the processors
TOTAL = 96 * MEGABYTE


@pytest.fixture
def network():
    with Network(["store", "n1", "n2", "n3", "n4"]) as network:
        yield network


@contextlib.contextmanager
def store_in(network, folder):
    address = network.address["store"]
    command = network.within("store", environment().parent / "moto_server", "-H", address, "-p", "5000")
    with running(command, f"http://{address}:5000", folder / "moto.log"):
        yield S3(f"http://{address}:5000")


def fetch(network, store, folder, nodes, peers=True):
    """Has them fetch at the same time; returns the seconds that it took, and what the store has sent."""
    sent, began = network.sent_by("store"), time.monotonic()
    programs = []
    for number, node in enumerate(nodes):
        more = {"peers": {"node": number, "addresses": [network.address[name] for name in nodes], "port": 7000, "token": "the job's"}} if peers else {}
        program = subprocess.Popen(network.within(node, PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        program.stdin.write(request("fetch", store.place("sets", "data"), store.credentials, folder=str(folder / node), connections=16, **more))
        program.stdin.close()
        program.stdin = None
        programs.append(program)
    for program in programs:
        out, _ = program.communicate(timeout=300)
        assert "done" in json.loads(out.splitlines()[-1]), out[-2000:]
    return time.monotonic() - began, network.sent_by("store") - sent


def test_four_nodes_take_each_byte_from_the_store_once(network, tmp_path):
    nodes = ["n1", "n2", "n3", "n4"]
    content = {f"shards/{number}.bin": os.urandom(TOTAL // 6) for number in range(6)} | {f"small/{number}.txt": os.urandom(1000 + number) for number in range(40)}
    with store_in(network, tmp_path) as store:
        store.make_container("sets")
        for path, value in content.items():
            store.put("sets", f"data/{path}", value)
        network.shape(LINK)
        alone, sent_to_one = fetch(network, store, tmp_path / "alone", ["n1"], peers=False)
        together, sent_to_four = fetch(network, store, tmp_path / "together", nodes)
    print(f"one {alone:.1f} s, four {together:.1f} s, {together / alone:.2f} times; the store sent {sent_to_four / sent_to_one:.2f} times as much")
    for node in nodes:
        for path, value in content.items():
            there = (tmp_path / "together" / node / path).read_bytes()
            assert hashlib.sha256(there).digest() == hashlib.sha256(value).digest(), (node, path)
    assert sent_to_one >= TOTAL
    assert sent_to_four < 1.15 * sent_to_one
    # There are 12 pieces, of which each node fetches its three at the same time, before it can give any of them to others.
    assert together < 2.7 * alone, "by the store's link alone it would be four times"


def test_a_node_that_is_killed_costs_the_others_no_data(network, tmp_path):
    content = {f"{number}.bin": os.urandom(8 * MEGABYTE) for number in range(6)}
    with store_in(network, tmp_path) as store:
        store.make_container("sets")
        for path, value in content.items():
            store.put("sets", f"data/{path}", value)
        network.shape(LINK)
        peers = {"addresses": [network.address[name] for name in ("n1", "n2")], "port": 7000, "token": "the job's"}
        programs = []
        for number, node in enumerate(("n1", "n2")):
            program = subprocess.Popen(network.within(node, PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            program.stdin.write(request("fetch", store.place("sets", "data"), store.credentials, folder=str(tmp_path / node), peers={"node": number, **peers}))
            program.stdin.close()
            program.stdin = None
            programs.append(program)
        for line in programs[1].stdout:
            if json.loads(line).get("progress", {}).get("bytes", 0) > 0:
                break
        programs[1].kill()
        out, _ = programs[0].communicate(timeout=120)
        programs[1].wait()
        assert "done" in json.loads(out.splitlines()[-1]), out[-2000:]
    for path, value in content.items():
        assert (tmp_path / "n1" / path).read_bytes() == value, path
