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


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"
