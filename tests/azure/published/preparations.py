"""What stands for what is Azure ML's own: computes' names, addresses of data, and what the examples register before a job."""
import json
import pathlib
import re

COMPUTES = ("cpu-cluster", "gpu-cluster", "cpu-cluster-lg", "gpu-v100-cluster", "gpu-v100-1GPU-cluster", "cpucluster", "serverless")
ADDRESSES = {
    "https://azuremlexamples.blob.core.windows.net/datasets": "datasets",
    "https://dprepdata.blob.core.windows.net/demo": "demo",
    "azureml://datastores/workspaceblobstore/paths": "datastore",
    "https://www.robots.ox.ac.uk/~vgg/data/pets/data": "pets",
    "https://azureopendatastorage.blob.core.windows.net/nyctlc": "nyctlc",
}
DATA = {"azureml:sampledata": "datasets", "azureml:cifar-10-example": "cifar-10"}

# What an example's README or script creates before its job, below cli/jobs: kind, file, and the name that jobs take it by.
REGISTERED = [
    ("component", f"pipelines-with-components/basics/1b_e2e_registered_components/{part}.yml", f"my_{part}")
    for part in ("train", "score", "eval")
] + [("data", "pipelines-with-components/basics/4d_data_input/data.yml", "local-folder-example")]


def site(data):
    """The site.yml: computes that mean this machine, data by address and by name."""
    mapped = {address: str(data / folder) for address, folder in {**ADDRESSES, **DATA}.items()}
    return json.dumps({"computes": {name: "local" for name in COMPUTES}, "data": mapped}, indent=1)  # JSON is YAML


def register(service, clone):
    """Creates what REGISTERED names; fails loudly, since files depend on it."""
    for kind, file, _ in REGISTERED:
        result = service.cli(kind, "create", "--file", clone / "cli/jobs" / file)
        assert result.returncode == 0, result.stderr


def by_hand(file):
    """What a user does for this file beside naming the compute: a phrase each."""
    text = pathlib.Path(file.path).read_text()
    blob = re.sub(r"wasbs://(\w+)@([\w.]+)", r"https://\2/\1", text)
    mapped = any(address in blob for address in ADDRESSES) or any(f"{name}@" in text for name in DATA)
    created = [kind for kind, _, name in REGISTERED if re.search(rf"azureml:{name}\b", text)]
    phrases = ["data mapped"] if mapped else []
    return phrases + [f"{created.count(kind)} {kind} created" for kind in dict.fromkeys(created)]
