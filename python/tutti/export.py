"""Writes a trained model as ONNX.

    tutti-export MODEL_FOLDER FILE.onnx

MODEL_FOLDER is what tutti-train wrote, such as outputs/model; its model.pt is exported by PyTorch's
own exporter, for batches of any size. The weights lie in FILE.onnx. The file's output is then
compared with the module's by onnxruntime, on noise; where they differ by more than 1e-4 of the
output's norm, nothing is written. Needs the packages torch, onnx and onnxruntime.

Exit code: 0 written and equal; 1 not; 2 wrong arguments, or a package is missing.
"""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import sys
import warnings
from typing import List

_TOLERANCE = 1e-4
_OPSET = 17
_PACKAGES = ("torch", "onnx", "onnxruntime")


def _export(folder: pathlib.Path, target: pathlib.Path) -> float:
    """The relative distance between onnxruntime's output and the module's."""
    import onnxruntime
    import torch

    size = json.loads((folder / "model.json").read_text())["input"]
    network = torch.jit.load(str(folder / "model.pt"), map_location="cpu").eval()
    torch.manual_seed(1)
    images = torch.randn(3, 3, size["height"], size["width"])
    with warnings.catch_warnings():  # of the exporter for TorchScript: a script has no other
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (images[:2],), str(target), dynamo=False, opset_version=_OPSET,
                          input_names=["images"], output_names=["output"],
                          dynamic_axes={"images": {0: "n"}, "output": {0: "n"}})
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    theirs = torch.from_numpy(session.run(None, {"images": images.numpy()})[0])
    with torch.no_grad():
        ours = network(images)
    distance = (theirs - ours).norm()
    return float(distance / ours.norm()) if distance else 0.0  # a transformer that was not trained answers zeros


def _fault(arguments: List[str]) -> str:
    """What is wrong that is known before anything is read; "": nothing."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed in {sys.executable}: pip install {' '.join(missing)}"
    folder, target = map(pathlib.Path, arguments)
    for name, why in (("model.json", "is it what tutti-train left as outputs/model?"),
                      ("model.pt", "tutti-train writes it, unless --no-torchscript")):
        if not (folder / name).is_file():
            return f"{folder} has no {name}: {why}"
    if not target.parent.is_dir():
        return f"the folder {target.parent} does not exist"
    return ""


def main() -> int:
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    if len(arguments) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    fault = _fault(arguments)
    if fault:
        print(f"tutti-export: {fault}", file=sys.stderr)
        return 2
    import torch

    folder, target = map(pathlib.Path, arguments)
    partial = target.with_name(f".{target.name}.partial")
    try:
        distance = _export(folder, partial)
        if not distance < _TOLERANCE:
            print(f"tutti-export: onnxruntime's output of {folder} is {distance:.1e} from the module's, so nothing is written",
                  file=sys.stderr)
            return 1
        os.replace(partial, target)
    except torch.onnx.OnnxExporterError as error:
        print(f"tutti-export: PyTorch's exporter does not take {folder}: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"tutti-export: {target}: {error.strerror or error}", file=sys.stderr)
        return 1
    finally:
        if partial.exists():
            partial.unlink()
    print(f"{target}: onnxruntime's output is {distance:.1e} from the module's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
