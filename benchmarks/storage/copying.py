#!/usr/bin/env python3
"""How fast `tutti storage cp -r` copies a folder to a bucket and back, beside rclone and s5cmd.

The store is versitygw on this machine (tools/storage-peers), and takes the same processors: what is compared is what a client costs. Each has so many
connections. The contenders take turns; ratios are a peer's time over tutti's, round by round: above 1 tutti is faster.

    benchmarks/storage/copying.py [--rounds 3] [--connections 16] [--small 10000] [--megabytes 2048] [--build build]
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

import setting

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command, environment):
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stdout[-1000:]}")
    return time.monotonic() - began


def contenders(options, store, home):
    """What each runs to copy from one place to another, by its name; places are folders, or begin with s3://."""
    connections = str(options.connections)
    keys = {"AWS_ACCESS_KEY_ID": store.credentials["access_key_id"], "AWS_SECRET_ACCESS_KEY": store.credentials["secret_access_key"], "AWS_REGION": "us-east-1"}
    rclone = options.tools / "rclone" if (options.tools / "rclone").exists() else "rclone"
    config = {**keys, "RCLONE_CONFIG_S3_TYPE": "s3", "RCLONE_CONFIG_S3_PROVIDER": "Other", "RCLONE_CONFIG_S3_ENV_AUTH": "true",
              "RCLONE_CONFIG_S3_ENDPOINT": store.url}

    def tutti(source, target):
        named = [place.replace("s3://bench/", "azureml://datastores/bench/paths/", 1) for place in (source, target)]
        return run([options.build / "bin/tutti", "storage", "cp", "-r", *named], {**keys, "TUTTI_HOME": str(home)})

    def by_rclone(source, target):
        named = [place.replace("s3://", "s3:", 1) for place in (source, target)]
        return run([rclone, "copy", *named, "--config", "/dev/null", "--quiet", "--transfers", connections, "--checkers", connections, "--multi-thread-streams",
                    connections, "--multi-thread-cutoff", "8M", "--s3-no-check-bucket", "--s3-upload-concurrency", connections], config)

    def by_s5cmd(source, target):
        named = [source + "/*" if source.startswith("s3://") else source + "/", target + "/"]
        return run([options.tools / "s5cmd", "--endpoint-url", store.url, "--numworkers", connections, "--log", "error", "cp", "--concurrency", connections, *named],
                   keys)

    return {"tutti": tutti, "rclone": by_rclone, "s5cmd": by_s5cmd}


def measure(name, folder, options, runs, store, scratch):
    files = [file for file in folder.rglob("*") if file.is_file()]
    total = sum(file.stat().st_size for file in files)
    up, down = {contender: [] for contender in runs}, {contender: [] for contender in runs}
    for _ in range(options.rounds):
        for contender, copy in runs.items():
            back = scratch / "back"
            for place in (store.folder / "bench/data", back):
                shutil.rmtree(place, ignore_errors=True)
            os.sync()
            up[contender].append(copy(str(folder), "s3://bench/data"))
            os.sync()
            down[contender].append(copy("s3://bench/data", str(back)))
            kept = sum(file.stat().st_size for file in back.rglob("*") if file.is_file())
            if kept != total:
                raise SystemExit(f"{contender} brought {kept} of {total} bytes")
    print(f"\n{name}: {len(files)} files, {total / 1e6:.0f} MB, {options.connections} connections\n")
    print("| | up, s | beside tutti | down, s | beside tutti |\n| --- | --- | --- | --- | --- |")
    for contender in runs:
        cells = [contender]
        for taken in (up, down):
            ratios = sorted(mine / ours for mine, ours in zip(taken[contender], taken["tutti"]))
            cells += [f"{statistics.median(taken[contender]):.1f}", f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"]
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--small", type=int, default=10000, help="how many files of 10 kB")
    parser.add_argument("--megabytes", type=int, default=2048, help="the size of the large file")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    options = parser.parse_args()
    setting.use(options.build)
    import machine
    from gateway import s3_gateway
    from running_service import RunningService
    options.tools = setting.peers()
    with tempfile.TemporaryDirectory(prefix="tutti-copy.") as name:
        scratch = pathlib.Path(name)
        with s3_gateway(options.tools, scratch) as store:
            (store.folder / "bench").mkdir()
            service = RunningService(options.build / "bin/tutti", scratch / "home")
            try:
                (scratch / "store.yml").write_text(f"name: bench\ntype: s3\nbucket_name: bench\nendpoint: {store.url}\nregion: us-east-1\n")
                run([options.build / "bin/tutti", "datastore", "create", "--file", scratch / "store.yml"], {"TUTTI_HOME": str(scratch / "home")})
                print(machine.heading())
                runs = contenders(options, store, scratch / "home")
                for kind, files, size in (("small", options.small, 10000), ("large", 1 if options.megabytes else 0, options.megabytes << 20)):
                    if not files:
                        continue
                    folder = scratch / kind
                    for i in range(files):
                        file = folder / str(i // 100) / str(i)
                        file.parent.mkdir(parents=True, exist_ok=True)
                        file.write_bytes(os.urandom(min(size, 1 << 20)) * max(1, size >> 20))
                    measure(kind, folder, options, runs, store, scratch)
            finally:
                service.stop()


if __name__ == "__main__":
    main()
