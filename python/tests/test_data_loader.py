"""tutti.data: loaders that read ahead."""
import threading

import pytest

import horovod.data
from ranks import PATIENCE
from tutti.data import AsyncDataLoaderMixin, BaseDataLoader

DEADLINE = 20 * PATIENCE  # seconds


class Counting(BaseDataLoader):
    """Epochs of numbers; knows how many batches were read, and by whom."""

    def __init__(self, count, fails_at=None):
        self.count, self.fails_at = count, fails_at
        self.read = 0
        self.epochs = 0
        self.threads = set()
        self.changed = threading.Condition()

    def __len__(self):
        return self.count

    def _iterate(self):
        self.epochs += 1
        self.threads.add(threading.current_thread())
        for number in range(self.count):
            if number == self.fails_at:
                raise OSError("the disk is gone")
            with self.changed:
                self.read += 1
                self.changed.notify_all()
            yield number

    def _process_batch(self, batch):
        assert threading.current_thread() is threading.main_thread()
        return batch * 10

    def wait_until_read(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: self.read >= count, DEADLINE)


class ReadingAhead(AsyncDataLoaderMixin, Counting):
    pass


@pytest.fixture
def made():
    """Makes loaders that are closed afterwards."""
    loaders = []

    def make(*arguments, **options):
        loaders.append(ReadingAhead(*arguments, **options))
        return loaders[-1]
    yield make
    for loader in loaders:
        loader.close_async_loader()


def test_horovods_module_is_tuttis():
    assert horovod.data.AsyncDataLoaderMixin is AsyncDataLoaderMixin
    assert horovod.data.data_loader_base.BaseDataLoader is BaseDataLoader


@pytest.mark.parametrize("depth", [0, 1, 3, 64])
def test_epochs_are_those_of_the_loader(made, depth):
    loader = made(async_loader_queue_size=depth, count=5)
    for _ in range(3):
        assert list(loader) == list(Counting(5)) == [0, 10, 20, 30, 40]
    on_its_own = threading.main_thread() not in loader.threads
    assert len(loader) == 5 and on_its_own == (depth > 0)


def test_it_reads_ahead_but_no_further_than_asked(made):
    loader = made(4, count=100)
    batches = iter(loader)
    assert next(batches) == 0
    loader.wait_until_read(6)  # one taken, four waiting, and one that finds no room
    assert next(batches) == 10
    loader.wait_until_read(7)
    loader.close_async_loader()
    assert loader.read == 7


def test_it_reads_the_next_epoch_while_the_user_is_elsewhere(made):
    loader = made(8, count=3)
    assert list(loader) == [0, 10, 20]
    loader.wait_until_read(6)
    assert loader.epochs >= 2


def test_an_iteration_left_early_is_continued(made):
    loader = made(2, count=4)
    assert next(iter(loader)) == 0
    assert list(loader) == [10, 20, 30]


def test_what_the_loader_raises_comes_after_the_batches_before_it(made):
    loader = made(2, count=4, fails_at=2)
    for _ in range(2):
        seen = []
        with pytest.raises(OSError, match="the disk is gone"):
            for batch in loader:
                seen.append(batch)
        assert seen == [0, 10]


def test_closing_ends_the_thread_and_the_iteration(made):
    loader = made(2, count=10**9)
    seen = []
    for batch in loader:
        seen.append(batch)
        if len(seen) == 3:
            loader.close_async_loader()
    assert seen == [0, 10, 20] and not any(thread.is_alive() for thread in loader.threads)
    loader.close_async_loader()  # again: nothing
    assert next(iter(loader)) == 0


def test_a_loader_needs_its_own_batches():
    with pytest.raises(NotImplementedError):
        iter(BaseDataLoader())
    with pytest.raises(NotImplementedError):
        len(BaseDataLoader())
