"""What every rank of test_tensorflow_operations.py does."""
import functools
import os

import numpy as np
import tensorflow as tf

import tutti.tensorflow as hvd
from ranks import raises
from tutti.tensorflow import custom_op

TYPES = [tf.uint8, tf.int8, tf.int16, tf.int32, tf.int64, tf.float16, tf.bfloat16, tf.float32,
         tf.float64]
CARRIED = TYPES + [tf.bool, tf.uint16, tf.uint32, tf.uint64]


def begins():
    """The ranks have the op exactly if the test wants it."""
    hvd.init()
    wanted = os.environ.get("TUTTI_TENSORFLOW_OP") != "0"
    assert (custom_op.load() is not None) == wanted


def equal(tensor, expected):
    np.testing.assert_array_equal(np.asarray(tensor).astype(np.float64),
                                  np.asarray(expected, np.float64))


def check(results, expected):
    for result, right in zip(results, expected):
        equal(result, right)


def in_modes(*cases):
    """Runs functions in eager mode, all of them in a tf.function, and twice in a session of
    TensorFlow 1; they return tensors and what they shall be. Autograph, which needs as long as all
    else for them, has only those that come alone."""
    for case in cases:
        check(*case())
    expected = []

    @tf.function(autograph=len(cases) == 1)
    def traced():
        results = []
        for case in cases:
            tensors, right = case()
            results += tensors
            expected.extend(right)
        return results
    for _ in range(2):
        check(traced(), expected)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        results, before = [], []
        for case in cases:
            with tf.control_dependencies(before):  # nodes of Python wait in threads
                before = case()[0]
            results += before
        for _ in range(2):
            check(session.run(results), expected)


def by_itself(case):
    return functools.wraps(case)(lambda: in_modes(case))


def _reduced(dtype, shape):
    mine = tf.cast(tf.fill(shape, hvd.rank() + 1), dtype)
    results, expected = [], []
    for op, value in [(hvd.Sum, 3), (hvd.Min, 1), (hvd.Max, 2), (hvd.Product, 2)]:
        results.append(tf.cast(hvd.allreduce(mine, op=op), tf.float64))
        assert results[-1].shape == mine.shape
        expected.append(np.full(shape, value))
    return results, expected


def reduces_every_type():
    shapes = [(tf.float32, ()), (tf.float32, (0,)), (tf.float32, (5,))]
    in_modes(*(functools.partial(_reduced, *case)
               for case in [*shapes, *((dtype, (2, 3)) for dtype in TYPES)]))


@by_itself
def means_and_factors():
    values = tf.constant([1.0, hvd.rank()])
    results = [hvd.allreduce(values), hvd.allreduce(values, average=False),
               hvd.allreduce(values, op=hvd.Sum, prescale_factor=2, postscale_factor=0.5),
               hvd.allreduce(values, compression=hvd.Compression.fp16),
               hvd.allreduce(tf.Variable([4]) if tf.executing_eagerly() else tf.constant([4]),
                             op=hvd.Sum)]
    assert results[3].dtype == tf.float32
    return results, [[1, 0.5], [2, 1], [2, 1], [1, 0.5], [8]]


@by_itself
def groups():
    """Tests groups of several shapes and types, which are reduced as one."""
    mine = [tf.fill([2], hvd.rank() + 1.0), tf.fill([3, 1], hvd.rank()),
            tf.constant(2.5, tf.float64)]
    gathered = hvd.grouped_allgather([tf.fill([hvd.rank() + 1], 1.0), tf.fill([1, 2], hvd.rank())])
    scattered = hvd.grouped_reducescatter([tf.range(3.0), tf.range(2)], op=hvd.Sum)
    first = hvd.rank() == 0
    return ([*hvd.grouped_allreduce(mine, op=hvd.Sum), *gathered, *scattered],
            [[3, 3], [[1], [1], [1]], 5, [1, 1, 1], [[0, 0], [1, 1]], [0, 2] if first else [4],
             [0] if first else [2]])


def _moved(dtype):
    rank, most = hvd.rank(), 1 if dtype == tf.bool else 3
    mine = tf.cast(tf.fill([rank + 1, 2], rank), dtype)
    dealt, received = hvd.alltoall(tf.cast(tf.range(3) + rank, dtype), splits=[1, 2])
    results = [hvd.allgather(mine), hvd.broadcast(tf.cast(rank, dtype), 1),
               hvd.alltoall(tf.cast([0, rank], dtype)), dealt]
    expected = [[[0, 0], [1, 1], [1, 1]], 1, [0, 0] if rank == 0 else [0, 1],
                [0, 1] if rank == 0 else np.minimum([1, 2, 2, 3], most)]
    return ([*(tf.cast(result, tf.float32) for result in results), received],
            [*expected, [1, 1] if rank == 0 else [2, 2]])


def moves_every_type():
    in_modes(*(functools.partial(_moved, dtype) for dtype in CARRIED))


@by_itself
def scatters():
    mine = tf.reshape(tf.range(10.0), [5, 2]) * (hvd.rank() + 1)
    whole = np.arange(10.0).reshape(5, 2)
    part = whole[:3] if hvd.rank() == 0 else whole[3:]
    return ([hvd.reducescatter(mine, op=hvd.Sum), hvd.reducescatter(mine),
             hvd.reducescatter(mine, op=hvd.Sum, prescale_factor=0.5)],
            [3 * part, 1.5 * part, 1.5 * part])


def sparse():
    """Slices are gathered; as dense tensors they add up."""
    slices = tf.IndexedSlices(tf.fill([1, 2], hvd.rank() + 1.0), tf.constant([hvd.rank()]),
                              tf.constant([3, 2]))
    summed = hvd.allreduce(slices, op=hvd.Sum)
    equal(tf.convert_to_tensor(summed), [[1, 1], [2, 2], [0, 0]])
    mixed = hvd.grouped_allreduce([tf.ones([1]), slices])
    equal(mixed[0], [1])
    equal(tf.convert_to_tensor(mixed[1]), [[0.5, 0.5], [1, 1], [0, 0]])
    for op in (hvd.Min, hvd.Adasum):
        with raises(NotImplementedError):
            hvd.allreduce(slices, op=op)
    with raises(NotImplementedError):
        hvd.allreduce(slices, op=hvd.Sum, prescale_factor=2.0)


def gradients():
    """Tests the gradients of every collective, as Horovod defines them; in eager mode and in a
    tf.function."""
    rank = hvd.rank()
    weights = tf.constant([1.0 + rank, 2.0 + rank])
    sums = {"allreduce": (lambda x: hvd.allreduce(x, op=hvd.Sum) * weights, [3, 5]),
            "mean": (lambda x: hvd.allreduce(x) * weights, [1.5, 2.5]),
            "gather": (lambda x: hvd.allgather(x) * tf.tile(weights, [2]), [1.5, 2.5]),
            "broadcast": (lambda x: hvd.broadcast(x, 1) * weights, [1.5 * rank, 2.5 * rank]),
            "all to all": (lambda x: hvd.alltoall(x, splits=[1, 1])[0] * weights,
                           [1 + rank, 2 + rank]),
            "scatter": (lambda x: hvd.reducescatter(x, op=hvd.Sum) * weights[0], [2, 4]),
            "group": (lambda x: hvd.grouped_allreduce([x, 2 * x], op=hvd.Sum)[1] * weights,
                      [6, 10])}
    for wrap in (lambda function: function, tf.function):
        for name, (forward, expected) in sums.items():
            def gradient(x, forward=forward):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = forward(x)
                return tape.gradient(y, x)
            found = wrap(gradient)(tf.constant([5.0, 6.0]))
            np.testing.assert_allclose(found, expected, err_msg=name)


def gradients_of_gradients():
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = hvd.allreduce(x * x * x, op=hvd.Sum)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)
    for wrap in (lambda function: function, tf.function):
        equal(wrap(second)(tf.constant([1.0, 2.0])), [12, 24])


def many_outstanding_in_any_order():
    """Ranks come to 40 independent reductions in opposite orders: only nodes that do not wait in
    threads can do that, so without the op it is one batch."""
    from tutti.tensorflow.reductions import allreduce_each

    @tf.function
    def reduced(values):
        bases = [f"number_{place}" for place in range(40)]
        return allreduce_each(tf.unstack(values), bases, op=hvd.Sum)

    @tf.function
    def in_opposite_orders(values):
        order = range(40) if hvd.rank() == 0 else reversed(range(40))
        return [hvd.allreduce(values[place], op=hvd.Sum, name=f"opposite_{place}",
                              ignore_name_scope=True) for place in order]
    values = tf.range(40.0)
    for _ in range(3):
        equal(tf.stack(reduced(values)), 2 * np.arange(40.0))
        if custom_op.load() is not None:
            found = in_opposite_orders(values)
            equal(tf.stack(found if hvd.rank() == 0 else found[::-1]), 2 * np.arange(40.0))


def in_branches_and_loops():
    """Graphs within graphs whose tensors are called alike."""
    @tf.function
    def branches(x):
        first = tf.cond(x[0] > 0, lambda: hvd.allreduce(x + 1, op=hvd.Sum), lambda: x)
        second = tf.cond(x[0] > 0, lambda: hvd.allreduce(x + 2, op=hvd.Sum), lambda: x)
        for _ in tf.range(3):
            x = hvd.allreduce(x, op=hvd.Sum)
        return first, second, x
    for result, expected in zip(branches(tf.constant([1.0])), [4, 6, 8]):
        equal(result, [expected])


def constants_are_not_folded():
    """A graph that is constant on one rank runs its collectives at every call all the same."""
    @tf.function
    def sums(x):
        return hvd.allreduce(tf.constant([1.0]) if hvd.rank() == 0 else x, op=hvd.Sum, name="sum")
    for step in range(3):
        equal(sums(tf.constant([float(step)])), [1 + step])


def numbers_when_the_graph_runs():
    @tf.function
    def numbers():
        return (hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op(),
                hvd.process_set_included_op(), hvd.process_set_included_op(99))
    for found in (numbers(), numbers.python_function()):
        assert [int(number) for number in found] == [hvd.rank(), 2, hvd.rank(), 2, 1, -2]


def in_a_process_set():
    one = hvd.add_process_set([1])
    both = hvd.global_process_set
    for _ in range(2):
        if hvd.rank() == 1:
            equal(hvd.allreduce(tf.constant([3.0]), process_set=one), [3])
            equal(hvd.allgather(tf.constant([3.0]), process_set=one), [3])
            assert int(hvd.size_op(one.process_set_id)) == 1
        equal(hvd.allreduce(tf.constant([1.0]), op=hvd.Sum, process_set=both), [2])
    assert hvd.remove_process_set(one)
    with raises(ValueError, "not registered"):
        hvd.allreduce(tf.constant([1.0]), process_set=one)


def joins():
    """A rank without data joins; the other goes on."""
    if hvd.rank() == 0:
        equal(hvd.allreduce(tf.constant([2.0]), op=hvd.Sum, name="after join"), [2])
    assert int(hvd.join()) == 0
    hvd.barrier()

    @tf.function
    def meets():
        hvd.barrier()
        return tf.constant(1)
    meets()


def variables():
    """From one rank to the others, at once and in graphs."""
    mine = [tf.Variable(tf.fill([2], float(hvd.rank()))), tf.Variable(hvd.rank()),
            tf.Variable([hvd.rank() == 0])]
    hvd.broadcast_variables(mine, root_rank=1)
    for variable, expected in zip(mine, [[1, 1], 1, [False]]):
        equal(variable, expected)
    mine[0].assign([hvd.rank(), 5.0])
    equal(hvd.broadcast_(mine[:2], root_rank=0)[0], [0, 5])
    equal(mine[0], [0, 5])

    @tf.function
    def traced():
        hvd.broadcast_variables(mine[1:2], root_rank=1)
        return mine[1].read_value()
    mine[1].assign(hvd.rank() + 7)
    equal(traced(), 8)
    with tf.Graph().as_default():
        variable = tf.compat.v1.get_variable("v", initializer=float(hvd.rank()))
        hook = hvd.BroadcastGlobalVariablesHook(1)
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
            equal(session.run(variable), 1)
    with raises(RuntimeError, "broadcast_variables"):
        hvd.broadcast_global_variables(0)


def objects():
    mine = {"rank": hvd.rank(), 0: [1, 2]} if hvd.rank() else None
    assert hvd.broadcast_object(mine, root_rank=1) == {"rank": 1, 0: [1, 2]}
    assert hvd.broadcast_object_fn(root_rank=0)(hvd.rank()) == 0
    found = hvd.allgather_object({"rank": [hvd.rank()] * (hvd.rank() + 1)})
    assert found == [{"rank": [0]}, {"rank": [1, 1]}]


def wrong_use():
    """Every rank is told, by TensorFlow's exceptions, and what was wrong has no consequences."""
    rank = hvd.rank()
    differ = [lambda: hvd.allreduce(tf.ones([2 + rank]), name="shape"),
              lambda: hvd.allreduce(tf.ones([2], tf.float32 if rank else tf.int32), name="type"),
              lambda: hvd.broadcast(tf.ones([2]), rank, name="root"),
              lambda: hvd.allgather(tf.ones([2, 2 + rank]), name="columns")]
    for wrong in differ:
        with raises(tf.errors.FailedPreconditionError, "rank [01].* rank [01]"):
            wrong()
    with raises(tf.errors.InvalidArgumentError, "evenly"):
        hvd.alltoall(tf.ones([3]))
    with raises((tf.errors.OpError, ValueError)):
        hvd.reducescatter(tf.constant(1.0))
    with raises(ValueError, "both"):
        hvd.allreduce(tf.ones([1]), average=True, op=hvd.Sum)
    kinds = tf.errors.UnknownError
    if custom_op.load() is not None:
        kinds = tf.errors.FailedPreconditionError
    with raises(kinds, "rank [01].* rank [01]"):
        tf.function(lambda: hvd.allreduce(tf.ones([2 + rank]), name="in a graph"))()
    equal(hvd.allreduce(tf.ones([1]), op=hvd.Sum), [2])


def small_names():
    """What scripts and tests take from horovod.tensorflow beside the operations."""
    first, second, third = (tf.Variable(float(number)) for number in range(3))
    nested = [first, [second, third]]
    refs = hvd.vars_to_refs(nested)
    assert hash(refs) == hash(hvd.vars_to_refs(list(nested)))
    assert hvd.refs_to_vars(refs)[0] is first and hvd.refs_to_vars(refs)[1][1] is third
    calls = []
    cached = hvd._cache(lambda *arguments: calls.append(arguments) or len(calls))
    assert [cached(refs), cached(refs), cached(1), tf.function(lambda: cached(refs))(),
            cached(refs)] == [1, 1, 2, 3, 1]
    equal(hvd._make_subgraph(lambda x: hvd.allreduce(x, op=hvd.Sum))(tf.constant([1.0])), [2])
    assert not hasattr(hvd, "data")
    with raises(ImportError, "shard"):
        import horovod.tensorflow.data


def begins_again():
    """A function that was traced before runs on in the next session."""
    doubled = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))
    equal(doubled(tf.constant([1.0])), [2])
    hvd.barrier()
    hvd.shutdown()
    with raises((ValueError, tf.errors.OpError), "init"):
        hvd.allreduce(tf.ones([1]))
    with raises(tf.errors.OpError, "init"):
        doubled(tf.constant([1.0]))


def tells_of_a_lost_rank():
    """Rank 1 ends; rank 0 is told, in eager mode and in a graph, by what elastic training
    catches."""
    hvd.init()
    if hvd.rank() == 1:
        os._exit(0)
    from tutti.tensorflow.errors import is_of_lost_ranks
    for reduce in (lambda: hvd.allreduce(tf.ones([1]), name="lost"),
                   tf.function(lambda: hvd.allreduce(tf.ones([1]), name="lost in a graph"))):
        with raises(tf.errors.UnknownError, "rank 1") as caught:
            reduce()
        assert is_of_lost_ranks(caught[0])
