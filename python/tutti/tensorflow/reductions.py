"""Reductions as scripts call them: of dense and of sparse tensors, compressed or not."""
import tensorflow as tf

from tutti.tensorflow import mpi_ops
from tutti.tensorflow.compression import Compression
from tutti.tensorflow.mpi_ops import Adasum, Average, Sum, global_process_set
from tutti.tensorflow.util import as_it_is, is_elastic


def _size_of(process_set, dtype):
    """How many ranks, as a scalar of this type; while ranks come and go, when the graph runs."""
    if is_elastic():
        return tf.cast(mpi_ops.size_op(process_set.process_set_id), dtype)
    return tf.cast(process_set.size(), dtype)


def divided(gradient, divisor):
    """A gradient, dense, sparse or None, divided by a number."""
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(divided(gradient.values, divisor), gradient.indices,
                                gradient.dense_shape)
    return gradient / tf.cast(divisor, gradient.dtype)


def _check_sparse(op, prescale_factor, postscale_factor):
    if op == Adasum:
        raise NotImplementedError("Adasum does not take sparse tensors: use sparse_as_dense=True")
    if op not in (Sum, Average):
        raise NotImplementedError("sparse tensors (tf.IndexedSlices) are summed or averaged only")
    if prescale_factor != 1.0 or postscale_factor != 1.0:
        raise NotImplementedError("prescale_factor and postscale_factor do not apply to sparse "
                                  "tensors")


def _of_slices(slices, op, process_set, ignore_name_scope, device):
    """All ranks' values and indices one after another, which together are the sum."""
    with tf.device(device):
        gather = {"process_set": process_set, "ignore_name_scope": ignore_name_scope}
        values = mpi_ops.grouped_allgather([one.values for one in slices], **gather)
        indices = mpi_ops.grouped_allgather([one.indices for one in slices], **gather)
        if op == Average:
            values = [divided(one, _size_of(process_set, one.dtype)) for one in values]
    return [tf.IndexedSlices(its_values, its_indices, dense_shape=one.dense_shape)
            for one, its_values, its_indices in zip(slices, values, indices)]


def _of_dense(tensors, compression, device, reduce):
    """`reduce` on what is sent for the tensors."""
    with tf.device(device):
        compressed = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
        reduced = reduce([sent for sent, _ in compressed])
        return [compression.decompress(one, context) for one, (_, context) in zip(reduced,
                                                                                  compressed)]


def _check_adasum(op, process_set):
    if op == Adasum and process_set.process_set_id != 0:
        raise NotImplementedError("Adasum is of all ranks, not of a process set")


@as_it_is
def allreduce(tensor, average=None, device_dense="", device_sparse="", compression=Compression.none,
              op=None, prescale_factor=1.0, postscale_factor=1.0, name=None,
              process_set=global_process_set, ignore_name_scope=False):
    """A tensor of the same shape and type, reduced over the ranks of the set.

    tensor: a tensor or variable, of the same shape on all ranks; or tf.IndexedSlices, of which the
    ranks' values and indices are gathered (sum and average only).
    average: of old scripts, op instead.
    device_dense, device_sparse: where it runs; the collective itself is the CPU's.
    compression: Compression.fp16 halves what is sent of float32.
    op: Average (the default), Sum, Min, Max, Product, Adasum.
    prescale_factor, postscale_factor: every element times these, before and after.
    name: the same on all ranks; by default the input's.
    ignore_name_scope: the name is as it stands, whatever scope the op is in.
    """
    return grouped_allreduce([tensor], average, device_dense, device_sparse, compression, op,
                             prescale_factor, postscale_factor, process_set, ignore_name_scope,
                             name)[0]


@as_it_is
def grouped_allreduce(tensors, average=None, device_dense="", device_sparse="",
                      compression=Compression.none, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set, ignore_name_scope=False,
                      name=None):
    """The same for several tensors, dense and sparse, as a list; the dense ones are reduced all or
    none."""
    if not tensors:
        return tensors
    op = mpi_ops.handle_average_backwards_compatibility(op, average)
    _check_adasum(op, process_set)
    sparse = [place for place, tensor in enumerate(tensors) if isinstance(tensor, tf.IndexedSlices)]
    dense = [place for place in range(len(tensors)) if place not in sparse]
    results = [None] * len(tensors)
    if sparse:
        _check_sparse(op, prescale_factor, postscale_factor)
        reduced = _of_slices([tensors[place] for place in sparse], op, process_set,
                             ignore_name_scope, device_sparse)
        for place, one in zip(sparse, reduced):
            results[place] = one
    if dense:
        reduced = _of_dense([tensors[place] for place in dense], compression, device_dense,
                            lambda sent: mpi_ops._grouped_allreduce(sent, name, op, prescale_factor,
                                                                    postscale_factor,
                                                                    ignore_name_scope, process_set))
        for place, one in zip(dense, reduced):
            results[place] = one
    return results


@as_it_is
def allreduce_each(tensors, bases, device="", compression=Compression.none, op=Average,
                   prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set,
                   ignore_name_scope=False):
    """Several dense tensors, each by itself and all at once. `bases`: a name for each."""
    _check_adasum(op, process_set)
    return _of_dense(tensors, compression, device,
                     lambda sent: mpi_ops._run_each(mpi_ops.comm.ALL_REDUCE, sent, bases,
                                                    ignore_name_scope, process_set, op=op,
                                                    prescale=float(prescale_factor),
                                                    postscale=float(postscale_factor)))


@as_it_is
def reducescatter(tensor, device_dense="", compression=Compression.none, op=Average, name=None,
                  process_set=global_process_set, ignore_name_scope=False, prescale_factor=1.0,
                  postscale_factor=1.0):
    """This rank's rows of the tensor, reduced over the ranks of the set: they are dealt out evenly,
    the rest to the first ranks. Arguments as of allreduce."""
    return _of_dense([tensor], compression, device_dense,
                     lambda sent: [mpi_ops._reducescatter(sent[0], name, op, ignore_name_scope,
                                                          process_set, prescale_factor,
                                                          postscale_factor)])[0]


@as_it_is
def grouped_reducescatter(tensors, device_dense="", compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """The same for several tensors, as a list; they are reduced all or none."""
    if not tensors:
        return tensors
    return _of_dense(tensors, compression, device_dense,
                     lambda sent: mpi_ops._grouped_reducescatter(sent, op=op,
                                                                 process_set=process_set,
                                                                 prescale_factor=prescale_factor,
                                                                 postscale_factor=postscale_factor))
