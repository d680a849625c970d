"""tutti.data.shards over a folder: which samples come, and in which order."""
import io
import tarfile
import types

import pytest

from tutti.data.shards import ShardStream, read_index
from tutti.data.stream import StoreError

SIZES = [30, 1, 25, 40, 20, 20, 24]


@pytest.fixture
def folder(tmp_path):
    lines, number = ["tutti-index 1", "annotations labels", "most_boxes 1"], 0
    for shard, size in enumerate(SIZES):
        path = tmp_path / f"train-{shard:06}.tar"
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT if shard == 3 else tarfile.USTAR_FORMAT) as archive:
            for _ in range(size):
                for extension, content in (("jpg", b"%d" % number), ("cls", b"%d" % (number % 7))):
                    # A name that needs an extension of the format, in one shard.
                    member = tarfile.TarInfo(("é" * 120 if shard == 3 else "class") + f"/{number}.{extension}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
                number += 1
        lines.append(f"shard {path.name} {path.stat().st_size} {size}")
    (tmp_path / "train-index.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def numbers(stream):
    return [int(sample["jpg"]) for sample in stream]


def stream_of(folder, **more):
    return ShardStream(str(folder), **{"rank": 0, "world_size": 1, "mixed_shards": 3, "drop_last": False, **more})


def test_an_epoch_has_each_sample_once_in_an_order_of_its_own(folder):
    stream = stream_of(folder)
    epochs = [numbers(stream) for _ in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(sum(SIZES)))] * 2 and epochs[0] != epochs[1]
    assert stream.epoch == 2 and len(stream) == sum(SIZES)
    again = stream_of(folder)
    again.set_epoch(1)
    assert numbers(again) == epochs[1]
    assert numbers(stream_of(folder, seed=2)) != epochs[0]
    assert numbers(stream_of(folder, shuffle=False)) == list(range(sum(SIZES)))


def test_ranks_share_each_global_batch(folder):
    whole = numbers(stream_of(folder, batch_size=12))
    ranks = [numbers(stream_of(folder, batch_size=4, rank=rank, world_size=3)) for rank in range(3)]
    joined = []
    for at in range(0, len(whole) // 12 * 4, 4):
        joined += sum((rank[at:at + 4] for rank in ranks), [])
    assert joined == whole[:len(joined)] and sorted(sum(ranks, [])) == sorted(whole)
    dropped = stream_of(folder, batch_size=12, drop_last=True)
    assert numbers(dropped) == whole[:len(whole) // 12 * 12] and len(dropped) == len(whole) // 12 * 12


def test_it_goes_on_where_a_state_says(folder):
    whole = numbers(stream_of(folder, batch_size=8))
    resumed = stream_of(folder, batch_size=8)
    resumed.load_state_dict(stream_of(folder, batch_size=8).state_dict(epoch=0, batches=3))
    assert numbers(resumed) == whole[24:]
    assert resumed.state_dict(epoch=1, batches=resumed.batches) == {"epoch": 2, "batches": 0}
    stream = stream_of(folder, batch_size=8)
    read = iter(stream)
    begun = [int(next(read)["jpg"]) for _ in range(21)]
    other = stream_of(folder, batch_size=8)
    other.load_state_dict(stream.state_dict())
    assert begun + numbers(other) == whole, "as torchdata's loader asks, in the middle of a batch"


def test_a_worker_that_begins_when_another_has_ended_gives_the_same_epoch(folder, monkeypatch):
    stream = stream_of(folder, batch_size=8)

    def worker(number):
        monkeypatch.setattr("tutti.data.shards.get_worker_info", lambda: types.SimpleNamespace(id=number, num_workers=2))
        return numbers(stream)

    for epoch in (0, 1):
        whole = stream_of(folder, batch_size=8)
        whole.set_epoch(epoch)
        monkeypatch.setattr("tutti.data.shards.get_worker_info", lambda: None)
        expected = numbers(whole)
        assert stream.epoch == epoch
        first = worker(0)
        assert sorted(first + worker(1)) == sorted(expected), "each sample once"
    assert stream.epoch == 2
    monkeypatch.setattr("tutti.data.shards.get_worker_info", lambda: None)
    stream.set_epoch(1)  # again: what the workers have given of it before does not count
    assert sorted(worker(1) + worker(0)) == sorted(expected) and stream.epoch == 2


def test_few_shards_are_open_at_a_time_and_told_ahead(folder):
    stream = stream_of(folder)
    told, opened, most = [], set(), 0
    files = stream._files
    files.ahead, get = lambda paths: told.append(list(paths)), files.get
    files.get = lambda path: opened.add(path) or get(path)
    files.drop = opened.discard
    for _ in stream:
        most = max(most, len(opened))
    assert most <= 3 and not opened
    assert told[0][0] not in told[1] and len(told[0]) == 14, "this epoch's, then the next one's"


def test_what_is_wrong_is_named(folder):
    with pytest.raises(StoreError, match="test-index.txt"):
        stream_of(folder, split="test")
    with pytest.raises(ValueError, match="no such stream"):
        stream_of(folder, rank=3, world_size=2)
    shard = folder / "train-000002.tar"
    shard.write_bytes(shard.read_bytes() + b"\0" * 512)
    with pytest.raises(StoreError, match="train-000002.tar: has .* bytes"):
        stream_of(folder)
    with pytest.raises(ValueError, match="x: line 2"):
        read_index("tutti-index 1\nshard a 1\n", "x")
