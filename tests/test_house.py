"""Story: a newcomer carries on from the repository alone; what it says of itself is true."""
import pathlib
import re
import subprocess

from conftest import ROOT


def rooms():
    return [path.parent.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("CMakeLists.txt")
            if "tutti_room(" in path.read_text()]


def test_the_picture_of_the_house_shows_every_room():
    drawn = subprocess.run([ROOT / "tools/draw-house"], capture_output=True, text=True, check=True).stdout
    assert (ROOT / "docs/house.svg").read_text() == drawn, "tools/draw-house > docs/house.svg"
    for room in rooms():
        assert re.search(rf">{room.rsplit('/', 1)[-1]}\b", drawn), room


def test_the_architecture_page_names_every_room():
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    for room in rooms():
        assert re.search(rf"\b{room.rsplit('/', 1)[-1]}/", page), room


def test_pages_are_short_and_their_links_and_paths_lead_somewhere():
    done = subprocess.run([ROOT / "tools/check-pages"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
