"""Variables and Python objects from one rank to the others."""
import tensorflow as tf

from tutti import comm
from tutti.tensorflow import objects
from tutti.tensorflow.mpi_ops import _run_each, broadcast_, global_process_set
from tutti.tensorflow.util import as_it_is


@as_it_is
def broadcast_variables(variables, root_rank, process_set=global_process_set, inplace=False):
    """Gives the variables the values they have on rank `root_rank`, all at once; an op, in a graph.

    inplace: as Horovod's; broadcast_ instead, which is the same here.
    """
    variables = list(variables)
    if not variables:
        return None if tf.executing_eagerly() else tf.no_op()
    bases = [f"HorovodBroadcast.{place}" for place in range(len(variables))]
    values = _run_each(comm.BROADCAST, variables, bases, process_set=process_set, root=root_rank)
    assigned = [variable.assign(value) for variable, value in zip(variables, values)]
    if tf.executing_eagerly():
        return None
    return tf.group(*[one for one in assigned if one is not None])


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=global_process_set):
    """The object that rank `root_rank` gives, pickled on the way. session: not needed."""
    return objects.broadcast(obj, root_rank, name or "object", process_set)


def broadcast_object_fn(root_rank=0, session=None, name=None, process_set=global_process_set):
    """broadcast_object as a function of the object alone."""
    def broadcast_it(obj):
        return broadcast_object(obj, root_rank, session, name or "broadcast_object_fn", process_set)
    return broadcast_it


def allgather_object(obj, session=None, name=None, process_set=global_process_set):
    """What every rank gives, as a list by rank, pickled on the way. session: not needed."""
    return objects.allgather(obj, name or "object", process_set)
