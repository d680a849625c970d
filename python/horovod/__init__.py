"""Horovod's names for tutti's modules, so that `import horovod.torch as hvd` works unmodified.

A module of this package IS the one of tutti: horovod.torch is tutti.torch,
horovod.common.exceptions is tutti.comm.exceptions. So an exception that one raises is caught by the
other's name.
"""
from tutti._forward import forward

__version__ = "0.28.1"  # the version whose interface this is; scripts compare it

_NAMES = {
    "horovod.common": "tutti.comm", "horovod.torch": "tutti.torch",
    "horovod.tensorflow": "tutti.tensorflow", "horovod.keras": "tutti.keras",
    "horovod._keras": "tutti._keras", "horovod.runner": "tutti.runner", "horovod.data": "tutti.data"
}
_ABSENT = {
    "horovod.mxnet": "MXNet is retired",
    "horovod.spark": "start ranks with horovodrun, tutti or Slurm instead",
    "horovod.ray": "start ranks with horovodrun, tutti or Slurm instead",
    "horovod.tensorflow.data": "give every rank its shard of a tf.data.Dataset instead"
}

forward(_NAMES, _ABSENT)

from horovod.runner import run  # noqa: E402  (the finder has to be there first)
