#!/usr/bin/env python3
"""How many metric values a second `tutti serve --mlflow` takes beside `mlflow server` with SQLite, in turns of the same run, and how long a chart
of a history of a million points takes. Both answer once a value is on the disk; clients send prepared requests by plain HTTP.
  benchmarks/tracking/measure.py [--seconds 5] [--rounds 3] [--clients 4] [--points 1000000] [--save FILE]"""
import argparse
import collections
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import machine  # noqa: E402
from running_service import kept_results  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
API = "/api/2.0/mlflow/"
# What a client sends at once: how many metrics, and how many steps of each.
SHAPES = {"1000 values of 10 metrics": (10, 100), "100 values of 10 metrics": (10, 10), "100 values of 100 metrics": (100, 1), "one value": (1, 1)}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    def __init__(self, port, token=""):
        self.port, self.token = port, token
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

    def call(self, method, name, body=None):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        self.connection.request(method, API + name, body if isinstance(body, bytes | None) else json.dumps(body), headers)
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{name}: {answer.status} {content[:300]}")
        return json.loads(content)

    def new_run(self):
        return self.call("POST", "runs/create", {"experiment_id": "0", "start_time": 1})["run"]["info"]["run_id"]


def await_answer(port, process, token):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException, SystemExit):
            Server(port, token).call("GET", "experiments/get?experiment_id=0")
            return
        time.sleep(0.1)
    raise SystemExit("a server did not start")


@contextlib.contextmanager
def running(command, port, token_file=None):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while token_file and not token_file.exists() and process.poll() is None:
            time.sleep(0.05)
        token = token_file.read_text().strip() if token_file else ""
        await_answer(port, process, token)
        yield port, token
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait(30)


def body_of(run, shape, first_step):
    keys, steps = shape
    if keys * steps == 1:
        return "runs/log-metric", json.dumps({"run_id": run, "key": "m", "value": first_step / 7, "timestamp": first_step, "step": first_step}).encode()
    metrics = [{"key": f"m{key}", "value": (step + key) / 7, "timestamp": step, "step": step}
               for step in range(first_step, first_step + steps) for key in range(keys)]
    return "runs/log-batch", json.dumps({"run_id": run, "metrics": metrics}).encode()


def send(port, token, shape, seconds, begin, counts):
    """One client: a run of its own. Requests are made before the time that is measured, more if they do not suffice."""
    server = Server(port, token)
    run, step, prepared = server.new_run(), 0, collections.deque()
    for _ in range(200):
        prepared.append(body_of(run, shape, step))
        step += shape[1]
    server.connection.close()  # it was idle; the next request opens another
    begin.wait()
    values, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if not prepared:
            prepared.append(body_of(run, shape, step))
            step += shape[1]
        name, body = prepared.popleft()
        server.call("POST", name, body)
        values += shape[0] * shape[1]
    counts.put(values)


def rate(port, token, shape, arguments):
    begin, counts = multiprocessing.Barrier(arguments.clients + 1), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=send, args=(port, token, shape, arguments.seconds, begin, counts)) for _ in range(arguments.clients)]
    for client in clients:
        client.start()
    begin.wait()
    began = time.monotonic()
    values = sum(counts.get() for _ in clients)
    took = time.monotonic() - began
    for client in clients:
        client.join()
    return values / took


def chart(port, token, points):
    """Seconds that 1,000 of so many points take, at the median of 20."""
    server = Server(port, token)
    run = server.new_run()
    began = time.monotonic()
    for first in range(0, points, 1000):
        server.call("POST", *body_of(run, (1, 1000), first))
    filled = time.monotonic() - began
    times = []
    for _ in range(20):
        began = time.monotonic()
        sample = server.call("GET", f"metrics/get-history-bulk-interval?run_ids={run}&metric_key=m0&max_results=1000")["metrics"]
        times.append(time.monotonic() - began)
    assert len(sample) == min(points, 1000) and sample[-1]["step"] == points - 1
    return filled, statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--save", type=pathlib.Path)
    arguments = parser.parse_args()
    python = subprocess.check_output([ROOT / "tools/mlflow-environment"], text=True).strip()
    print(machine.processor())
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder, kept_results(arguments.save) as results:
        folder = pathlib.Path(folder)
        own_port, peer_port = free_port(), free_port()
        own_command = [ROOT / "build/bin/tutti", "serve", "--home", folder / "home", "--port", str(own_port), "--no-tls", "--mlflow"]
        peer_command = [pathlib.Path(python).parent / "mlflow", "server", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
                        "--artifacts-destination", folder / "artifacts", "--port", str(peer_port), "--workers", "2"]
        with running(own_command, own_port, folder / "home" / "token") as own, running(peer_command, peer_port) as peer:
            for name, shape in SHAPES.items():
                rounds = [(rate(*own, shape, arguments), rate(*peer, shape, arguments)) for _ in range(arguments.rounds)]
                ours, theirs = (statistics.median(column) for column in zip(*rounds))
                ratios = sorted(a / max(b, 0.001) for a, b in rounds)
                results[name] = {"tutti": ours, "mlflow server": theirs, "ratios": ratios}
                print(f"{name}, {arguments.clients} clients: tutti {ours:,.0f}/s, mlflow server {theirs:,.0f}/s; "
                      f"ratio {statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})", flush=True)
            filled, took = chart(*own, arguments.points)
            results["chart"] = {"points": arguments.points, "filled in s": filled, "s": took}
            print(f"1,000 of {arguments.points:,} points: {took * 1000:.1f} ms (they were logged in {filled:.1f} s by one client)")


if __name__ == "__main__":
    main()
