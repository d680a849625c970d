"""The peers' side of a model folder of tutti's (docs/formats/checkpoint.md): its images made ready, and its network by PyTorch."""
import json
import pathlib
import sys

import torch
import torchvision
from torchvision.transforms.v2 import functional

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "train_step"))
import peer_networks  # noqa: E402

# How PyTorch runs a network. "-last": with the colours of a pixel beside one another. Frozen is what TorchScript makes of the folder's
# model.pt for inference alone: constants for weights, batch-norm within convolutions, oneDNN's own order of the weights.
KINDS = ("eager", "eager-last", "script", "script-last", "frozen", "frozen-last")
PRECISIONS = ("fp32", "bf16", "autocast")  # bf16: weights and images; autocast: as torch.autocast chooses


class Preparation:
    """Decodes and cuts images as the folder says; on 500 x 375 pixels torchvision's decoder and resize take 2.4 ms, Pillow's 3.4."""

    def __init__(self, folder):
        self.about = json.loads((pathlib.Path(folder) / "model.json").read_text())
        size = self.about["input"]
        self.size, self.resize, self.stretch = [size["height"], size["width"]], size["resize"], size["stretch"]
        deviation = torch.tensor(size["stddev"])[:, None, None]
        self.factor, self.offset = 1 / (255 * deviation), -torch.tensor(size["mean"])[:, None, None] / deviation

    def pixels(self, jpeg):
        """uint8 [3, height, width] of the bytes of a JPEG."""
        image = torchvision.io.decode_jpeg(torch.frombuffer(bytearray(jpeg), dtype=torch.uint8), mode=torchvision.io.ImageReadMode.RGB)
        if list(image.shape[1:]) == self.size and not self.resize:
            return image
        wanted = self.size if self.stretch else [self.resize or max(self.size)]
        return functional.center_crop(functional.resize(image, wanted, antialias=True), self.size)

    def normalised(self, pixels):
        """fp32 [n, 3, height, width] of uint8."""
        return pixels.float().mul_(self.factor).add_(self.offset)


class Network:
    """Called with what Preparation.normalised returns, it gives logits."""

    def __init__(self, folder, kind="eager", precision="fp32"):
        how, _, last = kind.partition("-")
        self.order = torch.channels_last if last else torch.contiguous_format
        self.dtype, self.autocast = torch.bfloat16 if precision == "bf16" else torch.float32, precision == "autocast"
        script = torch.jit.load(str(pathlib.Path(folder) / "model.pt")).eval()
        network = script if how != "eager" else eager(folder, script)
        network = network.to(self.dtype).to(memory_format=self.order)
        self.network = torch.jit.optimize_for_inference(torch.jit.freeze(network)) if how == "frozen" else network

    def __call__(self, images):
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            return self.network(images.to(self.dtype).contiguous(memory_format=self.order))


class Block(peer_networks.Block):
    """tutti's network has the channels that are new behind the others."""

    def shortcut(self, x):
        if self.stride == 1 and not self.new:
            return x
        return torch.nn.functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.new))


def eager(folder, script):
    """torchvision's network, or benchmarks/train_step's, with the folder's weights. Both have their layers in one order, whatever the names."""
    about = json.loads((pathlib.Path(folder) / "model.json").read_text())
    peer_networks.Block = Block
    network = peer_networks.make(about["architecture"], len(about["classes"])).eval()
    network.load_state_dict(dict(zip(network.state_dict(), script.state_dict().values(), strict=True)))
    images = torch.rand(2, 3, about["input"]["height"], about["input"]["width"])
    with torch.inference_mode():
        torch.testing.assert_close(network(images), script(images), rtol=1e-3, atol=1e-3)
    return network
