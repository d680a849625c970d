"""Keras's fit on two ranks, with Keras 3 and with Keras 2, with the op and without:
keras_training.py is what they run."""
import subprocess

import pytest

from ranks import Ranks, environment_of, free_port, python_of


@pytest.fixture(scope="module", params=[("0", "1"), ("1", "1"), ("0", "0")],
                ids=["keras3-op", "keras2-op", "keras3-python"])
def ranks(request):
    legacy, op = request.param
    started = Ranks("keras_training", 2, "tensorflow", TF_USE_LEGACY_KERAS=legacy,
                    TUTTI_TENSORFLOW_OP=op)
    started.call("begins")
    yield started
    started.close()


@pytest.mark.parametrize("story", [
    "fits", "equals_one_process", "steps_after_several_passes", "local_layers", "sparse_gradients",
    "schedules", "broadcasts_all_but_local_variables", "loads_models", "keeps_configuration",
    "legacy_optimizers", "values", "takes_what_scripts_of_keras_2_say", "standalone_keras",
    "arguments_stand_where_horovods_do", "arguments_without_names"])
def test_fit(ranks, story):
    ranks.call(story)


def test_keras_can_be_imported_first():
    environment = environment_of(0, 1, free_port())
    subprocess.run([python_of("tensorflow"), "-c", "import tutti.keras"], env=environment,
                   check=True, timeout=120)
