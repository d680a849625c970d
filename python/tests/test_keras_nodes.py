"""Keras 2's fit without the op, by nodes of Python: the one variant that test_keras_training.py
leaves out. keras_training.py is what its ranks run."""
import pytest

RANKS = {"program": "keras_training", "framework": "tensorflow", "size": 2,
         "TF_USE_LEGACY_KERAS": "1", "TUTTI_TENSORFLOW_OP": "0"}


@pytest.fixture(scope="module")
def begun(ranks):
    ranks.call("begins")
    return ranks


@pytest.mark.parametrize("story", ["fits", "sparse_gradients", "legacy_optimizers"])
def test_fit(begun, story):
    begun.call(story)
