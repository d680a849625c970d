import argparse
import os
import pathlib

import tutti_greeter

parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--output")
args = parser.parse_args()
rank, nodes = os.environ["RANK"], os.environ["AZUREML_NODE_COUNT"]
names = sorted(path.name for path in pathlib.Path(args.data).iterdir())
(pathlib.Path(args.output) / f"part-{rank}.txt").write_text(f"{names}\n")
print(tutti_greeter.greeting(f"rank {rank} of {nodes} nodes"))
