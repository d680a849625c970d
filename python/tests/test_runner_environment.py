"""What the environment of a launcher says about a rank."""
import types

import pytest

from tutti.runner.common.util import env


@pytest.mark.parametrize("environment, expected", [
    ({}, (0, 1)), ({"HOROVOD_RANK": "1", "HOROVOD_SIZE": "3", "PMI_RANK": "0"}, (1, 3)),
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, (2, 4)),
    ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2)), ({"RANK": "5", "WORLD_SIZE": "6"}, (5, 6))])
def test_the_environment_says_which_rank_this_is(monkeypatch, environment, expected):
    monkeypatch.setattr(env, "os", types.SimpleNamespace(environ=environment))
    assert env.get_env_rank_and_size() == expected


@pytest.mark.parametrize("name", ["HOROVOD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "RANK"])
def test_half_of_what_says_a_rank_is_an_error(monkeypatch, name):
    monkeypatch.setattr(env, "os", types.SimpleNamespace(environ={name: "1"}))
    with pytest.raises(RuntimeError, match=f"{name}.* only one is set"):
        env.get_env_rank_and_size()
