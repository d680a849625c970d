"""Writes a file from the first rank, as a training would its model."""
import argparse
import os
import pathlib

parser = argparse.ArgumentParser()
parser.add_argument("--model", type=pathlib.Path, required=True)
model = parser.parse_args().model

rank, size = os.environ["HOROVOD_RANK"], os.environ["HOROVOD_SIZE"]
prepared = pathlib.Path(os.environ["AZ_BATCHAI_JOB_TEMP"], "prepared.txt").read_text().strip()
print(f"rank {rank} of {size}: the node is {prepared}")
if rank == "0":
    (model / "model.txt").write_text(f"trained by {size} ranks\n")
