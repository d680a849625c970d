"""A loader of batches, and what makes it read ahead in a thread.

    class Loader(AsyncDataLoaderMixin, MyLoader): ...   # MyLoader is a BaseDataLoader

    loader = Loader(async_loader_queue_size=8, ...)     # what follows goes to MyLoader
    for epoch in range(epochs):
        for batch in loader: ...
    loader.close_async_loader()
"""
import collections
import threading


class BaseDataLoader:
    """An epoch of batches by iteration. Who derives from it writes __len__ and _iterate."""

    def __len__(self):
        """How many batches an epoch has."""
        raise NotImplementedError

    def _iterate(self):
        """The batches of one epoch, as a generator or another iterable."""
        raise NotImplementedError

    def _process_batch(self, batch):
        """What the user gets of a batch. Called by the user's thread."""
        return batch

    def __iter__(self):
        return map(self._process_batch, self._iterate())


class _Reader:
    """A thread that reads epoch after epoch, at most `depth` entries ahead: (batch, None), or
    (None, error), after which it ends. StopIteration stands for an epoch's end, and ends nothing."""

    def __init__(self, epoch, depth):
        self._epoch, self._depth = epoch, depth
        self._entries = collections.deque()
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, name="tutti loader", daemon=True)
        self._thread.start()

    def _put(self, batch, error=None):
        """Waits for room. Whether reading goes on."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._entries) < self._depth)
            if not self._is_closed:
                self._entries.append((batch, error))
                self._changed.notify_all()
            return not self._is_closed

    def _read(self):
        try:
            while all(map(self._put, self._epoch())) and self._put(None, StopIteration()):
                pass
        except BaseException as error:  # the user's thread raises it
            self._put(None, error)

    def take(self):
        """The next entry, when there is one; the end of the epoch, when it was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._entries)
            entry = self._entries.popleft() if self._entries else (None, StopIteration())
            self._changed.notify_all()
            return entry

    def close(self):
        """Ends the thread, once the batch it is reading is there."""
        with self._changed:
            self._is_closed = True
            self._entries.clear()
            self._changed.notify_all()
        self._thread.join()


class AsyncDataLoaderMixin:
    """Before a BaseDataLoader in the order of the bases: its _iterate runs in a thread, from the
    first iteration on, and goes on with the next epoch while the user is not yet done with this
    one. An iteration that is left early is continued by the next. What _iterate raises is raised to
    the user, and the iteration after that begins a new epoch."""

    def __init__(self, async_loader_queue_size=64, debug_data_loader=False, *args, **kwargs):
        """async_loader_queue_size: batches (and ends of epochs) read ahead at most; 0: no thread.
        debug_data_loader: batches are counted on standard output. Others: the loader's own."""
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self._reader = None
        super().__init__(*args, **kwargs)

    def close_async_loader(self):
        """Ends the thread and drops what it has read ahead; a later iteration begins a new one."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _read_ahead(self):
        """The rest of this epoch's batches."""
        if self._reader is None:
            self._reader = _Reader(self._iterate, self.async_loader_queue_size)
        reader = self._reader
        batch, error = reader.take()
        while error is None:
            yield batch
            batch, error = reader.take()
        if not isinstance(error, StopIteration):
            self.close_async_loader()
            raise error

    def __iter__(self):
        batches = self._read_ahead() if self.async_loader_queue_size > 0 else self._iterate()
        for number, batch in enumerate(batches):
            if self.debug_data_loader:
                print(f"batch {number} of the loader", flush=True)
            yield self._process_batch(batch)
