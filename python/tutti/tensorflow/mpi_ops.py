"""The collectives on tensors, and ops that tell ranks and sizes when a graph runs.

By Horovod's name, since scripts import this module. What reductions, sparse tensors and compression
add stands in the package (reductions.py).
"""
import numpy as np
import tensorflow as tf

from tutti import comm
from tutti.comm import (Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set,
                        ccl_built, cross_rank, cross_size, cuda_built, ddl_built,
                        global_process_set, gloo_built, gloo_enabled, init, is_homogeneous,
                        is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
                        mpi_threads_supported, nccl_built, rank, remove_process_set, rocm_built,
                        shutdown, size, start_timeline, stop_timeline)
from tutti.comm import basics as _basics
from tutti.comm import process_sets
from tutti.tensorflow import collective, names
from tutti.tensorflow.arrays import Collective
from tutti.tensorflow.util import as_it_is

_LABELS = {comm.ALL_REDUCE: "Allreduce", comm.ALL_GATHER: "Allgather", comm.BROADCAST: "Broadcast",
           comm.ALL_TO_ALL: "Alltoall", comm.REDUCE_SCATTER: "Reducescatter",
           comm.BARRIER: "Barrier", comm.JOIN: "Join"}


def handle_average_backwards_compatibility(op, average):
    """The reduction, where `average` of old scripts may stand for it; Average if neither is given.
    ValueError if both are."""
    if op is not None and average is not None:
        raise ValueError("op and average must not both be given: average is what op has replaced")
    if op is not None:
        return op
    return Sum if average is False else Average


def check_num_rank_power_of_2(ranks):
    """Whether it is 1, 2, 4, ... Adasum here takes any number of ranks."""
    return ranks > 0 and ranks & (ranks - 1) == 0


def _base(kind, tensors):
    """The name of a graph's op that was not given one."""
    label = ("Grouped" if len(tensors) > 1 else "") + _LABELS[kind]
    ends = dict.fromkeys(tensor.name for tensor in (*tensors[:1], *tensors[-1:]))
    return names.normalized("_".join(["Horovod" + label, *ends]))


def _number_of(process_set):
    if process_set.process_set_id is None:
        raise ValueError(f"{process_set} is not registered: give it to hvd.init or "
                         "hvd.add_process_set")
    if process_set.process_set_id != 0:
        process_sets.ranks_of(process_set.process_set_id)  # ValueError if it is gone
    return process_set.process_set_id


def _run(kind, tensors, name=None, ignore_name_scope=False, process_set=global_process_set,
         splits=None, **fields):
    """The Result of one collective on one tensor or on a group."""
    tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
    described = Collective(kind, name, process_set=_number_of(process_set), **fields)
    if not tf.executing_eagerly():
        base = _base(kind, tensors) if name is None else name
        described = described._replace(name=names.in_graph(base, ignore_name_scope))
        return collective.run(described, tensors, splits)
    if name is not None:
        return collective.run(described, tensors, splits)
    with names.eager(_LABELS[kind], described.process_set) as own:
        return collective.run(described._replace(name=own), tensors, splits)


def _run_each(kind, tensors, bases, ignore_name_scope=False, process_set=global_process_set,
              **fields):
    """One tensor for every collective, all at once: those that are independent of one another, as
    a step's gradients are. `bases`: a name for each, unique among them."""
    tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
    described = Collective(kind, "", process_set=_number_of(process_set), **fields)

    def run(names_of_each):
        each = [described._replace(name=name) for name in names_of_each]
        results = collective.run_each(each, [[tensor] for tensor in tensors])
        return [result.outputs[0] for result in results]

    if not tf.executing_eagerly():
        return run([names.in_graph(base, ignore_name_scope) for base in bases])
    with names.eager(_LABELS[kind] + "s", described.process_set) as own:
        return run([f"{own}.{base}" for base in bases])


@as_it_is
def _allreduce(tensor, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0,
               ignore_name_scope=False, process_set=global_process_set):
    """A tensor of the same shape and type, reduced over the ranks of the set."""
    return _grouped_allreduce([tensor], name, op, prescale_factor, postscale_factor,
                              ignore_name_scope, process_set)[0]


@as_it_is
def _grouped_allreduce(tensors, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0,
                       ignore_name_scope=False, process_set=global_process_set):
    """The same for several, which are reduced all or none."""
    return _run(comm.ALL_REDUCE, tensors, name, ignore_name_scope, process_set, op=op,
                prescale=float(prescale_factor), postscale=float(postscale_factor)).outputs


@as_it_is
def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    """The ranks' tensors one after another, in rank order: [sum of their rows, ...]. The first
    dimensions may differ between ranks, the others and the type not."""
    return grouped_allgather([tensor], name, ignore_name_scope, process_set)[0]


@as_it_is
def grouped_allgather(tensors, name=None, ignore_name_scope=False, process_set=global_process_set):
    """The same for several, which are gathered all or none."""
    return _run(comm.ALL_GATHER, tensors, name, ignore_name_scope, process_set).outputs


@as_it_is
def broadcast(tensor, root_rank, name=None, ignore_name_scope=False,
              process_set=global_process_set):
    """The tensor of rank `root_rank` (of all ranks' numbers, also in a set), of this one's shape
    and type."""
    return _run(comm.BROADCAST, [tensor], name, ignore_name_scope, process_set,
                root=root_rank).outputs[0]


def _assigned(variables, values):
    """What the variables are when they have been given these values."""
    operations = [variable.assign(value) for variable, value in zip(variables, values)]
    if tf.executing_eagerly():
        return [tf.convert_to_tensor(variable) for variable in variables]
    with tf.control_dependencies([getattr(one, "op", one) for one in operations]):
        return [variable.read_value() for variable in variables]


@as_it_is
def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Gives the variables the values that they have on rank `root_rank`; returns these."""
    bases = [f"{name or 'HorovodBroadcast'}.{place}" for place in range(len(variables))]
    values = _run_each(comm.BROADCAST, variables, bases, process_set=process_set, root=root_rank)
    return _assigned(variables, values)


@as_it_is
def alltoall(tensor, splits=None, name=None, ignore_name_scope=False,
             process_set=global_process_set):
    """Deals the rows of `tensor` out: splits[r] of them, or as many to each, to rank r of the set.
    Returns what came from the ranks, one after another; with `splits` also int32 [ranks]: how many
    rows came from each."""
    rows = None if splits is None else tf.cast(tf.convert_to_tensor(splits), tf.int64)
    result = _run(comm.ALL_TO_ALL, [tensor], name, ignore_name_scope, process_set, rows)
    if splits is None:
        return result.outputs[0]
    return result.outputs[0], tf.cast(result.received, tf.int32)


@as_it_is
def _reducescatter(tensor, name=None, op=Sum, ignore_name_scope=False,
                   process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """This rank's rows of the reduced tensor: they are dealt out evenly, the rest to the first
    ranks."""
    return _grouped_reducescatter([tensor], name, op, ignore_name_scope, process_set,
                                  prescale_factor, postscale_factor)[0]


@as_it_is
def _grouped_reducescatter(tensors, name=None, op=Sum, ignore_name_scope=False,
                           process_set=global_process_set, prescale_factor=1.0,
                           postscale_factor=1.0):
    """The same for several, which are reduced all or none."""
    return _run(comm.REDUCE_SCATTER, tensors, name, ignore_name_scope, process_set, op=op,
                prescale=float(prescale_factor), postscale=float(postscale_factor)).outputs


@as_it_is
def join():
    """Says that this rank has no more data, and waits for the others to say so: until then their
    all-reduces go on without it. Int32: the rank that said it last."""
    return tf.cast(_run(comm.JOIN, [], "join").received[0], tf.int32)


@as_it_is
def barrier(process_set=global_process_set, name=None):
    """Is done when every rank of the set has come to it; an op, in a graph."""
    received = _run(comm.BARRIER, [], name or "HorovodBarrier", process_set=process_set).received
    return None if tf.executing_eagerly() else received.op


def _number_op(function, name):
    """What `function` says when the graph runs: an int32."""
    if tf.executing_eagerly():
        return tf.constant(function(), tf.int32)
    found = tf.numpy_function(lambda: np.int32(function()), [], tf.int32, name=name)
    found.set_shape([])
    return found


@as_it_is
def size_op(process_set_id=0, name=None):
    """How many ranks the set has when the graph runs: an int32, as with the others."""
    return _number_op(lambda: len(process_sets.ranks_of(process_set_id)), name)


@as_it_is
def process_set_included_op(process_set_id=0, name=None):
    """1 if this rank is in the set, else 0; below 0 where there is no such set, or no init was."""
    return _number_op(lambda: _included(process_set_id), name)


def _included(process_set_id):
    if not is_initialized():
        return -1
    try:
        return int(rank() in process_sets.ranks_of(process_set_id))
    except ValueError:
        return -2


@as_it_is
def local_size_op(name=None):
    """How many ranks there are on this node."""
    return _number_op(local_size, name)


@as_it_is
def rank_op(name=None):
    """This process's number."""
    return _number_op(rank, name)


@as_it_is
def local_rank_op(name=None):
    """Its number among those of its node."""
    return _number_op(local_rank, name)
