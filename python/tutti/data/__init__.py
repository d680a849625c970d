"""Loaders of batches that read ahead, as of horovod.data. No framework is needed."""
from tutti.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader
