"""Loaders of batches that read ahead, as of horovod.data, and data that lie in a store. No framework is needed."""
from tutti.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader
from tutti.data.stream import StoreError, StreamClient

_LATER = {"ShardStream": "tutti.data.shards", "TuttiFileSystem": "tutti.data.filesystem"}


def __getattr__(name):
    """What needs torch or fsspec, where they are installed, is imported when it is first named."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    return getattr(importlib.import_module(_LATER[name]), name)
