"""Writes what torchvision's networks compute, one safetensors file a network, for compare_models.

    torchvision_peer.py FOLDER NETWORK…

A file FOLDER/NAME.safetensors holds the state dict ("state."), images, the outputs in train mode ("output.0", ...; no
dropout), the gradients of sum(output * probe), or of the detector's own loss ("gradient.", at most 4096 elements of each,
evenly spread), and the output in evaluation mode afterwards. Weights are multiples of bfloat16's steps, in which they
are written: files of half the size.
"""
import json
import pathlib
import struct
import sys

import torch
import torchvision

CLASSES = 7
MOST = 4096
POOL = torch.randn((1 << 20) - 3, generator=torch.Generator().manual_seed(3))


def write_safetensors(path, tensors):
    """{name: CPU tensor of fp32, bf16 or int64} as a file."""
    types = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64"}
    head, data, offset = {}, [], 0
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        head[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + raw.nbytes]}
        data.append(raw)
        offset += raw.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for raw in data:
            file.write(raw)


def sample(gradient):
    flat = gradient.detach().flatten()
    return flat[:: max(1, flat.numel() // MOST)]


def prepared(network):
    """In train mode, without dropout, its weights rounded to bfloat16."""
    with torch.no_grad():
        for tensor in network.state_dict().values():
            if tensor.dtype == torch.float32:
                tensor.copy_(tensor.bfloat16().float())
    network.train()
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return network


def state_of(network):
    return {f"state.{name}": tensor.bfloat16() if tensor.dtype == torch.float32 else tensor.clone()
            for name, tensor in network.state_dict().items()}


def gradients_of(network):
    return {f"gradient.{name}": sample(parameter.grad) for name, parameter in network.named_parameters()
            if parameter.grad is not None}


def outputs_of(network, images):
    """A list, the main output first."""
    output = network(images)
    if isinstance(output, dict):  # segmentation
        return list(output.values())
    return list(output) if isinstance(output, tuple) else [output]


def compare(folder, name, network, side, count=2):
    torch.manual_seed(1)
    tensors = state_of(prepared(network))
    images = torch.randn(count, 3, side, side)
    tensors |= {"classes": torch.tensor(CLASSES), "images": images}
    outputs = outputs_of(network, images)
    probes = [torch.randn_like(output) for output in outputs]
    sum((output * probe).sum() for output, probe in zip(outputs, probes)).backward()
    network.eval()
    with torch.no_grad():
        tensors["evaluated"] = outputs_of(network, images)[0]
    for i, (output, probe) in enumerate(zip(outputs, probes)):
        tensors |= {f"output.{i}": output, f"probe.{i}": probe}
    write_safetensors(folder / f"{name}.safetensors", tensors | gradients_of(network))


def compare_detector(folder):
    """SSD300: raw outputs, default boxes, the multibox loss of two objects and one, and its gradients."""
    torch.manual_seed(2)
    network = torchvision.models.detection.ssd300_vgg16(weights=None, weights_backbone=None, num_classes=CLASSES + 1)
    tensors = state_of(prepared(network))
    images = torch.randn(1, 3, 300, 300)
    objects = torch.tensor([[2.0, 0.1, 0.2, 0.6, 0.7], [5.0, 0.55, 0.4, 0.63, 0.52], [0.0, 0.3, 0.02, 0.95, 0.3]])
    features = list(network.backbone(images).values())
    head = network.head(features)
    size = torchvision.models.detection.image_list.ImageList(images, [(300, 300)])
    defaults = network.anchor_generator(size, features)
    boxes, labels = objects[:, 1:] * 300, objects[:, 0].long() + 1
    matches = network.proposal_matcher(torchvision.ops.box_iou(boxes, defaults[0]))
    losses = network.compute_loss([{"boxes": boxes, "labels": labels}], head, defaults, [matches])
    sum(losses.values()).backward()
    tensors |= {"classes": torch.tensor(CLASSES), "images": images, "annotations": objects.unsqueeze(0),
                "output.0": torch.cat([head["bbox_regression"], head["cls_logits"]], 2), "loss": sum(losses.values()),
                "defaults": defaults[0] / 300}
    network.eval()
    with torch.no_grad():
        head["cls_logits"] *= 8  # some are sure of something
        found = network.postprocess_detections(head, defaults, [(300, 300)])[0]
    tensors |= {"sharper": torch.tensor(8), "found.boxes": found["boxes"] / 300, "found.classes": found["labels"] - 1,
                "found.scores": found["scores"]}
    write_safetensors(folder / "ssd300_vgg16.safetensors", tensors | gradients_of(network))


def fill(tensor, *_, **__):
    """In place of every initialization: random weights, by which a layer neither dies nor explodes, without drawing each."""
    fill.calls += 1
    scale = (2 / tensor[0].numel()) ** 0.5 if tensor.dim() > 1 else 0.1
    begin = 7919 * fill.calls % len(POOL)  # no two layers get the same
    with torch.no_grad():
        rest = tensor.view(-1)
        while len(rest):
            some = POOL[begin:begin + len(rest)]
            torch.mul(some, scale, out=rest[:len(some)])
            rest, begin = rest[len(some):], 0
    return tensor


fill.calls = 0


def transformer(name):
    """A ViT; torchvision has none for images of 32 pixels, and draws neither class token nor head."""
    of = {"vit_ti_4": {"image_size": 32, "patch_size": 4, "num_heads": 3, "hidden_dim": 192, "mlp_dim": 768},
          "vit_b_16": {"image_size": 224, "patch_size": 16, "num_heads": 12, "hidden_dim": 768, "mlp_dim": 3072}}[name]
    network = torchvision.models.VisionTransformer(num_layers=12, num_classes=CLASSES, **of)
    fill(network.class_token)
    fill(network.heads.head.weight)
    return network


def main(folder, names):
    torch.manual_seed(0)
    for name in ("kaiming_normal_", "kaiming_uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "uniform_"):
        setattr(torch.nn.init, name, fill)
    models = torchvision.models
    for name in names:
        if name == "ssd300_vgg16":
            compare_detector(folder)
        elif name.startswith("fcn_"):
            make = getattr(models.segmentation, name.removesuffix("_aux"))
            aux = name.endswith("_aux")
            compare(folder, name, make(weights=None, weights_backbone=None, num_classes=CLASSES, aux_loss=aux), 40)
        elif name.startswith("vit_"):
            network = transformer(name)
            compare(folder, name, network, network.image_size)
        elif name == "inception_v3":
            compare(folder, name, models.inception_v3(num_classes=CLASSES, init_weights=True), 299)
        else:
            compare(folder, name, getattr(models, name)(num_classes=CLASSES), 32 if name == "vgg16" else 64)


if __name__ == "__main__":
    torch.set_num_threads(1)  # threads that wait for each other lose a busy machine
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
