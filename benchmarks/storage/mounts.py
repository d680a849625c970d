#!/usr/bin/env python3
"""What an epoch costs whose files come by a mount, beside the node's copy: rclone mount, as a job with `mount:` has it, and tutti-storage with a folder.

The store is versitygw on this machine (tools/storage-peers). An epoch reads every file once, in an order of its own, by so many threads. The kernel's cache is
dropped before each, which needs root, as does the mount.

    benchmarks/storage/mounts.py [--link 1000] [--files 2000] [--kilobytes 110] [--epochs 3] [--threads 8] [--build build]
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import subprocess
import tempfile
import time

import setting

ROOT = pathlib.Path(__file__).resolve().parents[2]


def epoch(files, options, seed):
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    order = random.Random(seed).sample(files, len(files))
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
        total = sum(pool.map(lambda file: len(file.read_bytes()), order))
    seconds = time.monotonic() - began
    if total != len(files) * options.kilobytes * 1000:
        raise SystemExit(f"read {total} bytes")
    return seconds


def mounted(store, names, options, scratch):
    """Seconds until the first file can be read, and those of each epoch."""
    config, folder = scratch / "rclone.conf", scratch / "mount"
    keys = store.credentials
    config.write_text(f"[store]\ntype = s3\nprovider = Other\naccess_key_id = {keys['access_key_id']}\nsecret_access_key = {keys['secret_access_key']}\n"
                      f"endpoint = {store.url}\nregion = us-east-1\nno_check_bucket = true\n")
    folder.mkdir()
    rclone = options.tools / "rclone" if (options.tools / "rclone").exists() else "rclone"
    began = time.monotonic()
    process = subprocess.Popen([rclone, "mount", "store:bench", folder, "--read-only", "--config", config])
    try:
        while not (folder / names[0]).exists():
            if process.poll() is not None or time.monotonic() - began > 60:
                raise SystemExit("rclone does not mount")
            time.sleep(0.005)
        ready = time.monotonic() - began
        return ready, [epoch([folder / name for name in names], options, seed) for seed in range(options.epochs)]
    finally:
        subprocess.run(["umount", "-l", folder])
        process.terminate()
        process.wait(timeout=60)


def fetched(store, names, options, scratch):
    from stores import PROGRAM, request
    folder = scratch / "copy"
    folder.mkdir()
    began = time.monotonic()
    subprocess.run([PROGRAM], input=request("fetch", store.place("bench"), store.credentials, folder=str(folder)), text=True, check=True, stdout=subprocess.DEVNULL)
    ready = time.monotonic() - began
    return ready, [epoch([folder / name for name in names], options, seed) for seed in range(options.epochs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", type=int, default=1000, help="Mbit/s between the node and the store; 0: loopback")
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--kilobytes", type=int, default=110, help="of a file; ImageNet's have as much")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    setting.use(options.build)
    import machine
    from behind_link import behind
    from gateway import s3_gateway
    options.tools = setting.peers()
    with (tempfile.TemporaryDirectory(prefix="tutti-mounts.") as name, behind(options.link) as (inside, host),
          s3_gateway(options.tools, pathlib.Path(name), host, inside) as store):
        scratch = pathlib.Path(name)
        print(machine.heading())
        names = [f"{i // 100}/{i}" for i in range(options.files)]
        for file in names:
            path = store.folder / "bench" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(options.kilobytes * 1000))
        megabytes = options.files * options.kilobytes / 1e3
        print(f"\n{options.files} files, {megabytes:.0f} MB, a link of {options.link} Mbit/s, {options.threads} threads\n")
        print("| | until the first file can be read, s | epochs, s |\n| --- | --- | --- |")
        for what, measure in (("a mount (rclone)", mounted), ("a copy (tutti-storage)", fetched)):
            ready, epochs = measure(store, names, options, scratch)
            print(f"| {what} | {ready:.1f} | {', '.join(f'{seconds:.1f}' for seconds in epochs)} |", flush=True)


if __name__ == "__main__":
    main()
