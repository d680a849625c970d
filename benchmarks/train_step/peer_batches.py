"""Where the peer's batches come from: (images in the options' layout on the device, labels), without end."""
import torch

import peer_networks

MEAN, STDDEV = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of ImageNet's pixels


def layout(options):
    return torch.contiguous_format if options.contiguous else torch.channels_last


class Same:
    """One synthetic batch, again and again. It lies on the device."""

    def __init__(self, options):
        side, self.classes = peer_networks.side_and_classes(options.model)
        images = torch.randn(options.batch, 3, side, side, device=options.device)
        self.batch = (images.to(memory_format=layout(options)),
                      torch.randint(0, self.classes, (options.batch,), device=options.device))

    def __next__(self):
        return self.batch


class Torchvision:
    """Images of a folder, decoded, cropped and flipped as bytes by a DataLoader whose workers stay, in page-locked memory,
    normalised on the device."""

    def __init__(self, options):
        import torchvision
        from torchvision.transforms import v2

        def read(path):
            return torchvision.io.decode_image(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB)

        side, _ = peer_networks.side_and_classes(options.model)
        transform = v2.Compose([v2.RandomResizedCrop(side, antialias=True), v2.RandomHorizontalFlip()])
        images = torchvision.datasets.ImageFolder(options.data / "train", transform, loader=read)
        self.classes = len(images.classes)
        order = torch.utils.data.RandomSampler(images, replacement=True, num_samples=1 << 30)
        loader = torch.utils.data.DataLoader(images, options.batch, sampler=order, num_workers=options.workers,
                                             pin_memory=options.device == "cuda", prefetch_factor=4)
        self.batches, self.device, self.layout = iter(loader), options.device, layout(options)
        self.mean, self.stddev = (255 * torch.tensor(values, device=self.device).view(3, 1, 1) for values in (MEAN, STDDEV))

    def __next__(self):
        images, labels = (part.to(self.device, non_blocking=True) for part in next(self.batches))
        return (images.to(memory_format=self.layout) - self.mean) / self.stddev, labels


class Dali:
    """The same by DALI: JPEGs decoded by nvJPEG on the GPU, of which each crop alone is decoded, resized and normalised there."""

    def __init__(self, options):
        from nvidia.dali import fn, pipeline_def, types
        from nvidia.dali.plugin.pytorch import DALIGenericIterator

        side, _ = peer_networks.side_and_classes(options.model)
        folder, last = options.data / "train", not options.contiguous
        self.classes, self.last = sum(entry.is_dir() for entry in folder.iterdir()), last

        @pipeline_def(batch_size=options.batch, num_threads=options.workers, device_id=0, seed=1, prefetch_queue_depth=3)
        def recipe():
            jpegs, labels = fn.readers.file(file_root=str(folder), random_shuffle=True)
            images = fn.decoders.image_random_crop(jpegs, device="mixed", output_type=types.RGB,
                                                   random_aspect_ratio=[3 / 4, 4 / 3], random_area=[0.08, 1.0], num_attempts=10)
            images = fn.resize(images, size=[side, side], interp_type=types.INTERP_LINEAR, antialias=True)
            images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="HWC" if last else "CHW",
                                              mirror=fn.random.coin_flip(), mean=[255 * m for m in MEAN],
                                              std=[255 * s for s in STDDEV])
            return images, labels.gpu()

        self.batches = DALIGenericIterator(recipe(), ["images", "labels"])  # of no known size: without end

    def __next__(self):
        batch = next(self.batches)[0]
        images = batch["images"].permute(0, 3, 1, 2) if self.last else batch["images"]
        return images, batch["labels"].view(-1).long()


def make(options):
    if not options.data:
        return Same(options)
    return Dali(options) if options.dali else Torchvision(options)
