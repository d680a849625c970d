"""Story: networks are those of the Python world (SPEC T1)."""
import json
import pathlib
import subprocess

import pytest

from conftest import BIN, ROOT


@pytest.fixture(scope="module")
def python():
    """A Python with torchvision and onnxruntime."""
    made = subprocess.run([ROOT / "tools/torchvision-environment"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.fail(f"no environment with torchvision: {made.stderr[-2000:]}")
    return made.stdout.strip()


# Same arithmetic, and on most machines the same bits; networks amplify what rounding there is.
BOUNDS = {"outputs": 1e-4, "gradients": 5e-3, "evaluated": 1e-4, "loss": 1e-5, "defaults": 1e-6, "missed": 0.05}
NETWORKS = {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mobilenet_v2", "vgg16", "inception_v3",
            "fcn_resnet50", "fcn_resnet50_aux", "fcn_resnet101", "ssd300_vgg16"}


def test_networks_compute_what_torchvisions_do(python, tmp_path):
    subprocess.run([python, pathlib.Path(__file__).with_name("torchvision_peer.py"), tmp_path], check=True, timeout=300)
    files = sorted(tmp_path.glob("*.safetensors"))
    assert {file.stem for file in files} == NETWORKS
    said = subprocess.run([BIN / "compare_models", *files], check=True, timeout=300, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in said.stdout.splitlines()]
    assert len(lines) == len(files)
    for line in lines:
        print(line)
        for name, bound in BOUNDS.items():
            if name in line:
                assert line[name] is not None and line[name] < bound, line
    for file in files:  # half a gigabyte
        file.unlink()
