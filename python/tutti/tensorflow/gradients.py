"""Gradients of the collectives, as Horovod defines them.

An all-reduce's is the all-reduce of the gradients by the same operation. What was gathered or
broadcast takes the mean of the ranks' gradients; an all-to-all goes back the way it came.
"""
import tensorflow as tf

from tutti import comm
from tutti.comm import process_sets
from tutti.tensorflow import names


def _named(collective, **changes):
    """The collective of a gradient; its name comes from the forward one's."""
    base = collective.name + ".gradient"
    name = base if tf.executing_eagerly() else names.in_graph(names.normalized(base))
    return collective._replace(name=name, **changes)


def _of_all_reduce(run, collective, inputs, received, upstream):
    return run(_named(collective), upstream).outputs


def _mean(run, collective, upstream):
    mean = _named(collective, kind=comm.ALL_REDUCE, op=comm.Average, root=0)
    return run(mean, upstream).outputs


def _of_all_gather(run, collective, inputs, received, upstream):
    """Every rank's rows lie one after another: these are this rank's."""
    ranks = process_sets.ranks_of(collective.process_set)
    mine = ranks.index(comm.rank())
    rows = tf.reshape(received, [len(inputs), len(ranks)])
    starts = tf.cumsum(rows, axis=1, exclusive=True)
    return [mean[starts[i, mine]:starts[i, mine] + rows[i, mine]]
            for i, mean in enumerate(_mean(run, collective, upstream))]


def _of_broadcast(run, collective, inputs, received, upstream):
    means = _mean(run, collective, upstream)
    if comm.rank() == collective.root:
        return means
    with tf.control_dependencies(means):  # the root's need this rank's part
        return [tf.zeros_like(mean) for mean in means]


def _of_all_to_all(run, collective, inputs, received, upstream):
    return run(_named(collective), upstream, received).outputs


def _of_reduce_scatter(run, collective, inputs, received, upstream):
    factor = collective.prescale * collective.postscale
    if collective.op == comm.Sum:
        factor *= len(process_sets.ranks_of(collective.process_set))
    scaled = upstream if factor == 1 else [one * tf.cast(factor, one.dtype) for one in upstream]
    gather = _named(collective, kind=comm.ALL_GATHER, op=comm.Sum, prescale=1.0, postscale=1.0)
    return run(gather, scaled).outputs


_BY_KIND = {comm.ALL_REDUCE: _of_all_reduce, comm.ALL_GATHER: _of_all_gather,
            comm.BROADCAST: _of_broadcast, comm.ALL_TO_ALL: _of_all_to_all,
            comm.REDUCE_SCATTER: _of_reduce_scatter}


def gradient(run, collective, inputs, received, upstream):
    """Those of the inputs, by `upstream`, those of the outputs. `run` is collective.run."""
    return _BY_KIND[collective.kind](run, collective, inputs, received, list(upstream))
