"""Samples of tar shards in a store, or in a folder, for a training loop of any framework.

    stream = ShardStream("s3://bucket/set", "train", batch_size=64, transform=decode)
    loader = torch.utils.data.DataLoader(stream, batch_size=stream.batch_size, num_workers=4)
    for epoch in range(epochs):
        for batch in loader: ...

The shards are those of WebDataset, with an index beside them (`tutti-data pack` and `tutti-data index` write it). Where torch is installed a stream is
an IterableDataset.
"""
import io
import mmap
import multiprocessing
import os
import random
import tarfile

from tutti.data.stream import StoreError, files_of

try:
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError:
    IterableDataset = object

    def get_worker_info():
        return None

_AHEAD = 16  # shards that are fetched ahead
_MOST_WORKERS = 4096  # of a loader


def read_index(text, name):
    """[(shard's name, bytes, samples)] of an index."""
    lines = text.splitlines()
    if lines[:1] != ["tutti-index 1"]:
        raise ValueError(f"{name}: line 1 is not \"tutti-index 1\"")
    shards = []
    for number, line in enumerate(lines[1:], 2):
        words = line.split(" ")
        if words[0] != "shard":
            continue
        if len(words) != 4 or not words[2].isdigit() or not words[3].isdigit():
            raise ValueError(f"{name}: line {number} is \"{line[:60]}\"; wanted is \"shard NAME BYTES IMAGES\"")
        shards.append((words[1], int(words[2]), int(words[3])))
    return shards


class _Shard:
    """One shard that is there: where its samples lie."""

    def __init__(self, path):
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        if path.endswith(".zst"):
            self._bytes = self._unpacked(path)
        self.samples = self._index()

    def _unpacked(self, path):
        try:
            import zstandard
        except ImportError:
            raise StoreError("refused", f"{os.path.basename(path)} is compressed: pip install zstandard") from None
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(self._bytes)).read()

    def _members(self):
        """(name, offset, size) of each file. Headers with extensions are left to tarfile, which takes ten times as long."""
        at, members, view = 0, [], self._bytes
        while at + 512 <= len(view):
            head = view[at:at + 512]
            if head[0] == 0:
                break
            kind, size = head[156:157], head[124:136].rstrip(b"\0 ")
            if kind not in b"0\0" or head[345] or not size.isdigit():
                return self._members_by_tarfile()
            size = int(size, 8)
            members.append((head[:100].rstrip(b"\0").decode(errors="surrogateescape"), at + 512, size))
            at += 512 + (size + 511) // 512 * 512
        return members

    def _members_by_tarfile(self):
        with tarfile.open(fileobj=io.BytesIO(self._bytes)) as archive:
            return [(member.name, member.offset_data, member.size) for member in archive if member.isfile()]

    def _index(self):
        samples, last = [], None
        for name, offset, size in self._members():
            folder, _, base = name.rpartition("/")
            stem, dot, extension = base.partition(".")
            if not stem or not dot:
                continue
            key = f"{folder}/{stem}" if folder else stem
            if key != last:
                samples.append((key, []))
                last = key
            samples[-1][1].append((extension.lower(), offset, size))
        return samples

    def sample(self, index):
        key, members = self.samples[index]
        return {"__key__": key, **{extension: bytes(self._bytes[offset:offset + size]) for extension, offset, size in members}}


class _Order:
    """The samples of an epoch, in an order that is a function of seed and epoch: shards are permuted, and each sample of the one at place p falls, by
    chance, into one of the `mixed` buckets from p on."""

    def __init__(self, sizes, seed, epoch, shuffle, mixed):
        self._sizes, self._chance, self._shuffle = sizes, random.Random(f"{seed} {epoch}"), shuffle
        self.mixed = mixed if shuffle else 1
        self.places = list(range(len(sizes)))
        if shuffle:
            self._chance.shuffle(self.places)

    def buckets(self):
        """Of each bucket its samples, as (shard, number), in their order."""
        coming = [[] for _ in range(self.mixed)]
        for place in range(len(self.places) + self.mixed - 1):
            if place < len(self.places):
                shard = self.places[place]
                size = self._sizes[shard]
                chosen = self._chance.choices(range(self.mixed), k=size) if self.mixed > 1 else [0] * size
                for number, bucket in enumerate(chosen):
                    coming[bucket].append((shard, number))
            bucket = coming.pop(0)
            coming.append([])
            if self._shuffle:
                self._chance.shuffle(bucket)
            yield bucket


def _rank_and_world():
    try:
        import torch.distributed as distributed
        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except ImportError:
        pass
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class ShardStream(IterableDataset):
    """The samples of a split that are this rank's, each a dict of bytes: {"__key__": "0017", "jpg": b"…", "cls": b"3"}.

    An iteration is an epoch, and ends with the next one's number in `epoch`. An epoch's order is cut into global batches of batch_size times
    world_size samples, of which each rank takes its part, and the workers of a DataLoader take turns, batch by batch: so what the loader gives does not
    depend on the number of workers, and the batch over all ranks not on that of ranks. A DataLoader must have the same batch_size."""

    def __init__(self, address, split="train", batch_size=1, seed=1, shuffle=True, mixed_shards=16, rank=None, world_size=None, drop_last=True,
                 transform=None, cache=None, most_bytes=0, program=None):
        """address: of a store, or a folder. rank, world_size: those of torch.distributed, else of RANK and WORLD_SIZE. mixed_shards: that samples
        come from at about any time. drop_last: without what is left after the last whole global batch. transform: what is given of a sample.
        Others: as of tutti.data.stream.StreamClient."""
        own = _rank_and_world()
        self.rank, self.world_size = own[0] if rank is None else rank, own[1] if world_size is None else world_size
        if not 0 <= self.rank < self.world_size or batch_size < 1 or mixed_shards < 1:
            raise ValueError(f"rank {rank} of {world_size}, batch_size {batch_size}, mixed_shards {mixed_shards}: there is no such stream")
        self.address, self.split, self.batch_size, self.seed = address, split, batch_size, seed
        self.shuffle, self.mixed_shards, self.drop_last, self.transform = shuffle, mixed_shards, drop_last, transform
        options = {"cache": cache, "most_bytes": most_bytes, "program": program} if "://" in address else {}
        self._files = files_of(address, **options)
        self.shards = self._read_index()
        self.size = sum(samples for _, _, samples in self.shards)
        # Shared with the workers, those that stay from epoch to epoch, too. Without locks, which would be of one way to start processes.
        self._epoch, self._begun = multiprocessing.RawValue("q", 0), multiprocessing.RawValue("q", 0)
        # By worker, the epoch after the one that it has given last. Each writes its own alone.
        self._ended = multiprocessing.RawArray("q", _MOST_WORKERS)
        self._given, self._to_skip = 0, 0

    def _read_index(self):
        name, files = f"{self.split}-index.txt", self._files.list()
        if name not in files:
            raise StoreError("not_found", f"{self.address}: has no {name}, which says what its shards hold: `tutti-data index FOLDER` writes it")
        with open(self._files.get(name), encoding="utf-8") as file:
            shards = read_index(file.read(), f"{self.address}/{name}")
        self._files.drop(name)
        for shard, size, _ in shards:
            if files.get(shard) != size:
                raise StoreError("refused", f"{self.address}/{shard}: has {files.get(shard, 'not been found,')} bytes, and the index says {size}: make the "
                                            "index anew with `tutti-data index FOLDER`")
        return shards

    @property
    def epoch(self):
        return self._epoch.value

    def set_epoch(self, epoch):
        """The next iteration is that epoch, from its beginning."""
        self.load_state_dict({"epoch": epoch, "batches": 0})

    @property
    def batches(self):
        """How many global batches an epoch has."""
        whole = self.batch_size * self.world_size
        return self.size // whole if self.drop_last else -(-self.size // whole)

    def __len__(self):
        """This rank's samples of an epoch."""
        return sum(end - begin for begin, end in map(self._own_part, range(self.batches)))

    def _own_part(self, batch):
        """Which of the samples of a global batch are this rank's."""
        whole = self.batch_size * self.world_size
        count = min(whole, self.size - batch * whole)
        return count * self.rank // self.world_size, count * (self.rank + 1) // self.world_size

    @property
    def batch(self):
        """The global batch of the epoch that the next iteration begins with: 0, or where a state says."""
        return self._begun.value

    def state_dict(self, epoch=None, batches=None):
        """Where the stream is. Who reads by a DataLoader says how many batches of which epoch its loop has done: workers are ahead of it. Without that:
        what this process has given, as torchdata's StatefulDataLoader asks in each worker."""
        if epoch is not None:
            return {"epoch": epoch + batches // self.batches, "batches": batches % self.batches}
        return {"epoch": self.epoch, "batches": self._begun.value, "given": self._given}

    def load_state_dict(self, state):
        """The next iteration goes on there."""
        self._epoch.value, self._begun.value = state["epoch"], state["batches"]
        if get_worker_info() is None:  # a worker that loads its own leaves the others'
            self._ended[:] = [0] * _MOST_WORKERS
        self._to_skip = state.get("given", 0)

    def __iter__(self):
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        if count > _MOST_WORKERS:
            raise ValueError(f"{count} workers of one loader: at most {_MOST_WORKERS}")
        epoch, first = self.epoch, self._begun.value
        self._ended[number] = 0
        skip, self._to_skip = self._to_skip, 0
        self._given = skip
        for given, (shard, index) in enumerate(self._own(epoch, first, number, count)):
            if given < skip:
                continue
            sample = shard().sample(index)
            self._given += 1
            yield self.transform(sample) if self.transform else sample
        self._given = 0
        # The last one goes on to the next epoch, for all: another one may begin only now.
        self._ended[number] = epoch + 1
        if all(ended == epoch + 1 for ended in self._ended[:count]):
            self._begun.value, self._epoch.value = 0, epoch + 1

    def _own(self, epoch, first, worker, workers):
        """What a worker gives of an epoch from the global batch `first` on: a function that opens the shard, and the sample's number in it."""
        whole, position, end = self.batch_size * self.world_size, 0, self.batches * self.batch_size * self.world_size
        sizes = [samples for _, _, samples in self.shards]
        order = _Order(sizes, self.seed, epoch, self.shuffle, self.mixed_shards)
        following = order.places + _Order(sizes, self.seed, epoch + 1, self.shuffle, self.mixed_shards).places
        open_shards = {}
        try:
            for place, bucket in enumerate(order.buckets()):
                if position + len(bucket) > first * whole:
                    self._files.ahead([self.shards[shard][0] for shard in following[place:place + _AHEAD] if shard not in open_shards])
                for shard, index in bucket:
                    batch, within = divmod(position, whole)
                    position += 1
                    if position > end:
                        return
                    begin, stop = self._own_part(batch)
                    if batch >= first and (batch - first) % workers == worker and begin <= within < stop:
                        yield (lambda shard=shard: self._shard(shard, open_shards)), index
                if place >= order.mixed - 1:
                    self._close(order.places[place - order.mixed + 1], open_shards)
        finally:
            for shard in list(open_shards):
                self._close(shard, open_shards)

    def _shard(self, number, open_shards):
        if number not in open_shards:
            name, _, samples = self.shards[number]
            shard = _Shard(self._files.get(name))
            if len(shard.samples) != samples:
                raise StoreError("refused", f"{self.address}/{name}: has {len(shard.samples)} samples, and the index says {samples}: make the index anew with "
                                            "`tutti-data index FOLDER`")
            open_shards[number] = shard
        return open_shards[number]

    def _close(self, number, open_shards):
        if open_shards.pop(number, None) is not None:
            self._files.drop(self.shards[number][0])
