"""Keras's fit on two ranks, with Keras 3 and with Keras 2, and without the op: keras_training.py
is what they run."""
import pytest

from ranks import Ranks


# TF_USE_LEGACY_KERAS and TUTTI_TENSORFLOW_OP.
VARIANTS = {"keras3-op": ("0", "1"), "keras2-op": ("1", "1"), "keras3-python": ("0", "0")}
BY_THE_OP = ["fits", "equals_one_process", "steps_after_several_passes", "local_layers",
             "sparse_gradients", "broadcasts_all_but_local_variables", "values"]
BESIDE_IT = ["schedules", "loads_models", "keeps_configuration", "legacy_optimizers",
             "takes_what_scripts_of_keras_2_say", "standalone_keras",
             "arguments_stand_where_horovods_do", "arguments_without_names"]


@pytest.fixture(scope="module")
def ranks(request):
    legacy, op = VARIANTS[request.param]
    started = Ranks("keras_training", 2, "tensorflow", TF_USE_LEGACY_KERAS=legacy,
                    TUTTI_TENSORFLOW_OP=op)
    started.call("begins")
    yield started
    started.close()


def of(*variants):
    """The mark of a test that the ranks of each of these run."""
    # Of the module: else each story would start ranks of its own.
    return pytest.mark.parametrize("ranks", variants, indirect=True, scope="module")


@pytest.mark.parametrize("story", BY_THE_OP + BESIDE_IT)
@of("keras3-op", "keras2-op")
def test_fit(ranks, story):
    ranks.call(story)


@pytest.mark.parametrize("story", BY_THE_OP)
@of("keras3-python")
def test_fit_without_the_op(ranks, story):
    ranks.call(story)
