"""A contender of compare: images by another loader, random-resized crop 224, flip, normalise.

    peer.py torchvision|torchvision-v2|dali|dali-fp16 THREADS FOLDER

FOLDER/train is an ImageFolder. `torchvision` is its reference recipe (PIL); `torchvision-v2` decodes with
torchvision.io and transforms tensors; both by a DataLoader with THREADS workers that stay. `dali` is DALI's CPU pipeline
(image_random_crop, resize, crop_mirror_normalize) with THREADS threads, to fp32 planes; `dali-fp16` the same to fp16 with
the colours of a pixel beside one another. Of DALI's settings (queue depths, executors, affinity, mmap, the decoder's
use_fast_idct) the last alone makes it faster without a loss of overlap, by 3 %, and is set; memory statistics are off as they
are by default. It says which versions it runs, then "ready". A line with a number on standard input asks for as many times through
the images; the answer is the number of images and the seconds that they took.
"""
import pathlib
import sys
import time

BATCH = 64
MEAN = [0.485, 0.456, 0.406]
STDDEV = [0.229, 0.224, 0.225]


def torchvision_turns(folder, threads, tensors):
    """A generator: send it a number of epochs, it gives the number of images."""
    import torch
    import torchvision
    from torchvision.transforms import v2

    print(f"torchvision {torchvision.__version__} on torch {torch.__version__}", flush=True)
    torch.set_num_threads(1)
    resize = v2.RandomResizedCrop(224, antialias=True)
    to_float = [v2.ToDtype(torch.float32, scale=True)] if tensors else [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True)]
    transform = v2.Compose([resize, v2.RandomHorizontalFlip(), *to_float, v2.Normalize(MEAN, STDDEV)])
    if not tensors:
        classic = torchvision.transforms
        transform = classic.Compose([classic.RandomResizedCrop(224), classic.RandomHorizontalFlip(), classic.ToTensor(),
                                     classic.Normalize(MEAN, STDDEV)])

    def read(path):
        return torchvision.io.decode_image(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB)

    loader = {"loader": read} if tensors else {}
    images = torchvision.datasets.ImageFolder(folder / "train", transform, **loader)
    batches = torch.utils.data.DataLoader(images, BATCH, shuffle=True, num_workers=threads, drop_last=True,
                                          persistent_workers=True, prefetch_factor=4)
    return lambda epochs: sum(len(labels) for _ in range(epochs) for _, labels in batches)


def dali_turns(folder, threads, halves):
    import nvidia.dali
    from nvidia.dali import fn, pipeline_def, types

    print(f"DALI {nvidia.dali.__version__}", flush=True)

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None, seed=1)
    def recipe():
        jpegs, labels = fn.readers.file(file_root=str(folder / "train"), random_shuffle=True, name="images")
        images = fn.decoders.image_random_crop(jpegs, device="cpu", output_type=types.RGB, random_aspect_ratio=[3 / 4, 4 / 3],
                                               random_area=[0.08, 1.0], num_attempts=10, use_fast_idct=True)
        images = fn.resize(images, size=[224, 224], interp_type=types.INTERP_LINEAR, antialias=True)
        images = fn.crop_mirror_normalize(images, dtype=types.FLOAT16 if halves else types.FLOAT,
                                          output_layout="HWC" if halves else "CHW", mirror=fn.random.coin_flip(),
                                          mean=[255 * m for m in MEAN], std=[255 * s for s in STDDEV])
        return images, labels

    pipeline = recipe()
    pipeline.build()
    steps = pipeline.epoch_size("images") // BATCH

    def turn(epochs):
        for _ in range(epochs * steps):
            pipeline.run()
        return epochs * steps * BATCH

    return turn


def main():
    kind, threads, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    if kind.startswith("dali"):
        turn = dali_turns(folder, threads, kind == "dali-fp16")
    else:
        turn = torchvision_turns(folder, threads, kind == "torchvision-v2")
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        images = turn(int(line))
        print(f"{images} {time.perf_counter() - began:.6f}", flush=True)


if __name__ == "__main__":
    main()
