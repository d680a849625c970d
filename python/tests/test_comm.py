"""The core without a framework: memory of the array module, two ranks."""
import array
import gc
import os
import threading
import time

from ranks import PATIENCE, raises
from tutti import comm

RANKS = {"framework": None, "size": 2, "HOROVOD_DYNAMIC_PROCESS_SETS": "1"}


def floats(*values):
    return array.array("f", values)


def tensor(values, output=None):
    return comm.Tensor(values.buffer_info()[0], output, (len(values),), comm.FLOAT32)


def in_place(values):
    return tensor(values, values.buffer_info()[0])


def reduced(name, values, **request):
    comm.submit(comm.ALL_REDUCE, name, [in_place(values)], keep=values, **request).wait()
    return list(values)


def begins():
    with raises(ValueError):
        comm.rank()
    comm.init()
    comm.init()  # again: nothing
    assert comm.is_initialized() and comm.is_homogeneous()
    return [comm.rank(), comm.size(), comm.local_rank(), comm.local_size(), comm.cross_rank(),
            comm.cross_size()]


def test_ranks_know_their_place(ranks):
    assert ranks.call("begins") == [[0, 2, 0, 2, 0, 1], [1, 2, 1, 2, 0, 1]]


def reduces():
    comm.init()
    rank = comm.rank()
    assert reduced("sum", floats(1, rank)) == [2, 1]
    assert reduced("mean", floats(1, rank), op=comm.Average) == [1, 0.5]
    assert reduced("scaled", floats(1, rank), prescale=2.0, postscale=3.0) == [12, 6]
    group = [floats(1, 2), floats(rank)]
    request = comm.Request(comm.ALL_REDUCE, "group", [in_place(values) for values in group])
    for _ in range(3):
        request.submit(keep=group).wait()
    assert [list(values) for values in group] == [[8, 16], [4]]


def test_tensors_are_reduced_alone_and_in_groups(ranks):
    ranks.call("reduces")


def gathers():
    comm.init()
    rank, outputs, over = comm.rank(), [], threading.Event()

    def allocate(index, shape, size):
        assert (index, shape, size) == (0, (3,), 12)
        outputs.append(floats(*[0] * 3))
        return outputs[0].buffer_info()[0]

    mine = floats(*[rank] * (rank + 1))
    operation = comm.submit(comm.ALL_GATHER, "rows", [tensor(mine)], allocate, over.set, mine)
    assert over.wait(30 * PATIENCE)
    operation.wait()
    assert list(outputs[0]) == [0, 1, 1] and operation.received() == [1, 2]
    assert operation.output().shape == (3,)


def test_an_output_is_allocated_when_its_shape_is_known(ranks):
    ranks.call("gathers")


def allocator_fails():
    comm.init()
    mine = floats(1)

    def allocate(index, shape, size):
        raise KeyError("no memory of this kind")

    operation = comm.submit(comm.ALL_GATHER, "refused", [tensor(mine)], allocate, keep=mine)
    with raises(KeyError, match="no memory of this kind"):
        operation.wait()


def test_what_an_allocator_raises_is_raised_by_wait(ranks):
    ranks.call("allocator_fails")


def differ():
    comm.init()
    values = floats(*[1] * (comm.rank() + 1))
    with raises(comm.HorovodInternalError, match=r'"shapes": rank \d .* but rank \d') as error:
        reduced("shapes", values)
    assert error[0].status == 3
    assert reduced("after", floats(1)) == [2]


def test_requests_that_differ_fail_on_both_ranks_which_go_on(ranks):
    ranks.call("differ")


def twice():
    comm.init()
    values = floats(1)
    if comm.rank() == 0:
        first = comm.submit(comm.ALL_REDUCE, "twice", [in_place(values)], keep=values)
        with raises(ValueError, match='"twice" is outstanding'):
            comm.submit(comm.ALL_REDUCE, "twice", [in_place(values)])
        assert not first.poll()
        with raises(TimeoutError):
            first.wait(0.01)
        reduced("go", floats(1))
        first.wait()
    else:
        reduced("go", floats(1))
        reduced("twice", values)
    assert list(values) == [2]


def test_a_name_is_outstanding_once(ranks):
    ranks.call("twice")


def twice_in_a_row():
    """Also when the first is done before the second comes, as on a rank that is alone."""
    comm.init()
    alone = comm.add_process_set([0])
    if comm.rank() == 0:
        values = floats(1)
        arguments = dict(tensors=[in_place(values)], process_set=alone.process_set_id, keep=values)
        comm.submit(comm.ALL_REDUCE, "row", **arguments)
        with raises(ValueError, "outstanding"):
            comm.submit(comm.ALL_REDUCE, "row", **arguments)
        for _ in range(2):  # waited for, it is free at once
            comm.submit(comm.ALL_REDUCE, "other", **arguments).wait()
    assert comm.remove_process_set(alone)


def test_a_name_is_not_used_again_before_its_operation_was_waited_for(ranks):
    ranks.call("twice_in_a_row")


def forgotten():
    comm.init()
    values = floats(1)
    comm.submit(comm.ALL_REDUCE, "forgotten", [in_place(values)], keep=values)
    gc.collect()
    reduced("fence", floats(1))
    deadline = time.monotonic() + 30 * PATIENCE
    while list(values) != [2] and time.monotonic() < deadline:
        os.sched_yield()
    assert list(values) == [2]


def test_an_operation_that_nobody_holds_goes_on(ranks):
    ranks.call("forgotten")


def uses_sets():
    comm.init()
    alone = comm.add_process_set([comm.ProcessSet([1]), [1]][comm.rank()])
    assert alone.ranks == [1] and alone.size() == 1
    with raises(ValueError):
        comm.add_process_set([1])
    with raises(ValueError):
        comm.add_process_set([0, 1])
    if alone.included():
        assert alone.rank() == 0
        assert reduced("mine", floats(5), process_set=alone.process_set_id) == [5]
    else:
        with raises(ValueError, match="not part"):
            alone.rank()
    assert comm.remove_process_set(alone) and not comm.remove_process_set(alone)
    assert not comm.remove_process_set(comm.global_process_set)
    assert comm.global_process_set.ranks == [0, 1]


def test_process_sets_come_and_go(ranks):
    ranks.call("uses_sets")


def begins_again():
    comm.init()
    comm.submit(comm.BARRIER).wait()
    comm.shutdown()
    assert not comm.is_initialized()
    with raises(ValueError, match="hvd.init"):
        reduced("late", floats(1))
    comm.init(process_sets=[comm.ProcessSet([0]), comm.ProcessSet([1])])
    assert reduced("anew", floats(1)) == [2]
    comm.submit(comm.BARRIER).wait()
    comm.shutdown()
    comm.init(comm=[comm_rank()])
    assert comm.size() == 1 and comm.rank() == 0
    comm.shutdown()


def comm_rank():
    return int(os.environ["RANK"])


def test_ranks_meet_again_after_a_shutdown_also_as_smaller_groups(ranks):
    ranks.call("begins_again")
