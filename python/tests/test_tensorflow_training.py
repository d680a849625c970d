"""Training with tutti.tensorflow on two ranks, with the op and without: tensorflow_training.py is
what they run."""
import pytest

from ranks import Ranks


@pytest.fixture(scope="module", params=["1", "0"], ids=["op", "python"])
def ranks(request):
    started = Ranks("tensorflow_training", 2, "tensorflow", TUTTI_TENSORFLOW_OP=request.param)
    started.call("begins")
    yield started
    started.close()


@pytest.mark.parametrize("story", [
    "tape_means", "tape_of_one_source", "tape_of_sparse_gradients", "partial_tape",
    "legacy_optimizer", "legacy_optimizer_of_several_passes", "adasum_optimizer", "batch_norm",
    "equals_one_process"])
def test_training(ranks, story):
    ranks.call(story)
