"""Story: a play of chaos says what this machine lets it leave out."""
import functools

import pytest

import needs
from chaos_floors import LeftOut


@pytest.mark.parametrize("whole, root, root_could, ends", [(False, True, True, False), (True, False, True, False), (True, True, False, False),
                                                           (True, True, True, True)])
def test_what_is_left_out_is_told_and_not_borne_where_all_is_wanted_and_root_could_have_it(monkeypatch, whole, root, root_could, ends):
    monkeypatch.setattr(needs, "WHOLE", whole)
    monkeypatch.setattr(needs, "may_be_root", lambda: root)
    left_out = LeftOut()
    assert left_out.told() == "left out: nothing"
    add = functools.partial(left_out.add, "jobs in containers", "not installed: podman", root_could)
    if ends:
        with pytest.raises(SystemExit, match="no jobs in containers: not installed: podman: this machine could have that"):
            add()
    else:
        add()
    assert left_out.told() == "left out: no jobs in containers: not installed: podman"
