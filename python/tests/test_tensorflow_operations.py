"""tutti.tensorflow's collectives on two ranks, with the op and without: tensorflow_operations.py is
what they run."""
import pytest

from ranks import Ranks

SIZE, FRAMEWORK = 2, "tensorflow"


def begun(op):
    ranks = Ranks("tensorflow_operations", SIZE, FRAMEWORK, TUTTI_TENSORFLOW_OP=op,
                  HOROVOD_DYNAMIC_PROCESS_SETS="1")
    ranks.call("begins")
    return ranks


@pytest.fixture(scope="module", params=["1", "0"], ids=["op", "python"])
def ranks(request):
    started = begun(request.param)
    yield started
    started.close()


@pytest.mark.parametrize("story", [
    "reduces_every_type", "means_and_factors", "groups", "moves_every_type", "scatters", "sparse",
    "gradients", "gradients_of_gradients", "many_outstanding_in_any_order",
    "in_branches_and_loops", "constants_are_not_folded", "numbers_when_the_graph_runs",
    "in_a_process_set", "joins", "variables", "objects", "wrong_use", "small_names",
    "begins_again"])
def test_tensors(ranks, story):
    ranks.call(story)


@pytest.mark.parametrize("op", ["1", "0"], ids=["op", "python"])
def test_a_lost_rank_is_named(op):
    ranks = begun(op)
    try:
        with pytest.raises(AssertionError, match="rank 1: ended with 0") as told:
            ranks.call("tells_of_a_lost_rank")
        assert "rank 0:" not in str(told.value)
    finally:
        ranks.close()
