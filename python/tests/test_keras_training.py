"""Keras's fit on two ranks, with Keras 3 and with Keras 2, and, with TUTTI_WHOLE_TESTS, without
the op: keras_training.py is what they run."""
import os

import pytest

from ranks import Ranks


# TF_USE_LEGACY_KERAS and TUTTI_TENSORFLOW_OP.
VARIANTS = {"keras3-op": ("0", "1"), "keras2-op": ("1", "1")}
if os.environ.get("TUTTI_WHOLE_TESTS"):
    VARIANTS["keras3-python"] = ("0", "0")
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


@pytest.mark.parametrize("ranks, story", [
    (variant, story) for variant in VARIANTS for story in BY_THE_OP + BESIDE_IT
    if story in BY_THE_OP or variant != "keras3-python"], indirect=["ranks"],
    scope="module")  # else each story would start ranks of its own
def test_fit(ranks, story):
    ranks.call(story)
