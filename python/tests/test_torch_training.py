"""Training with tutti.torch on two ranks: torch_training.py is what they run."""
import pytest

RANKS = {"program": "torch_training", "framework": "torch", "size": 2}


@pytest.mark.parametrize("story", [
    "equals_one_process", "accumulates", "says_what_is_wrong", "groups_of_two_optimizers",
    "groups_of_a_set_without_rank_0", "unused_parameters_and_sparse_gradients", "optimizer_state",
    "adasum", "batch_norm", "keeps_schedules"])
def test_training(ranks, story):
    ranks.call(story)
