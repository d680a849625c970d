"""Story: a newcomer carries on from the repository alone; what it says of itself is true."""
import importlib.machinery
import importlib.util
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


def include_rules():
    loader = importlib.machinery.SourceFileLoader("check_includes", str(ROOT / "tools/check-includes"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_includes", loader))
    loader.exec_module(module)
    return module


def test_include_rules_find_each_kind_of_breach(tmp_path):
    def write(path, text):
        (tmp_path / "src" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / path).write_text(text)

    write("platform/service/jobs/good.cc", '#include "platform/service/logs/a.h"\n#include "base/status.h"\nnamespace tutti::service {}\n')
    write("platform/service/jobs/later.cc", '#include "platform/service/admission/a.h"\n')
    write("platform/service/jobs/later_test.cc", '#include "platform/service/admission/a.h"\n')
    write("platform/store/upward.cc", '#include "platform/service/service.h"\n')
    write("platform/store/other_name.h", "namespace tutti::service {\n}\n")
    write("platform/api/torch.cc", "#include <torch/torch.h>\n")
    write("platform/nowhere/a.cc", "")
    found = list(include_rules().breaches(tmp_path))
    assert [line.split(": ")[0] for line in found] == [
        "src/platform/api/torch.cc:1", "src/platform/nowhere/a.cc", "src/platform/service/jobs/later.cc:1", "src/platform/store/other_name.h",
        "src/platform/store/upward.cc:1"], found
