"""Story: a newcomer carries on from the repository alone; what it says of itself is true."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import struct
import subprocess
import zlib

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


def test_who_trains_alone_fetches_nothing_for_datastores(tmp_path):
    libtorch = pathlib.Path(subprocess.check_output([ROOT / "tools/setup", "libtorch"], text=True).strip()).parent
    (tmp_path / "tutti").mkdir()
    (tmp_path / "tutti" / libtorch.name).symlink_to(libtorch)
    subprocess.run([ROOT / "tools/setup", "build"], check=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert [path.name for path in (tmp_path / "tutti").iterdir()] == [libtorch.name]


def tool(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
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
    write("platform/service/unordered/deep/a.cc", "")
    for number in range(41):
        write(f"base/text/a{number}.cc", "")
    found = list(tool("check-includes").breaches(tmp_path))
    assert [line.split(": ")[0] for line in found] == [
        "src/platform/service/unordered", "src/base/text", "src/platform/api/torch.cc:1", "src/platform/nowhere/a.cc", "src/platform/service/jobs/later.cc:1",
        "src/platform/store/other_name.h", "src/platform/store/upward.cc:1"], found


def test_the_test_of_each_source_is_found():
    done = subprocess.run([ROOT / "tools/check-tests"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_each_line_of_the_curated_environments_was_made_as_it_stands():
    done = subprocess.run([ROOT / "tests/jobs/environments/verify", "--stale"], capture_output=True, text=True)
    assert done.returncode == 0, f"to be verified (tests/jobs/environments/verify LINE…): {done.stdout}{done.stderr}"


def test_a_test_is_found_by_its_name_by_what_it_says_or_not_at_all():
    bodies = "inline int Twice(int n) {\n  return 2 * n;\n}\n"
    texts = {
        "a/named.cc": "", "a/named.h": bodies, "a/named_test.cc": '#include "a/named.h"\n',
        "a/covered.cc": "", "a/sub/also.cc": "", "b/other.h": bodies,
        "a/story_test.cc": "// What all promise.\n// Covers: covered.cc, sub/also.cc,\n// b/other.h. Over each.\n#include <x>\n",
        "b/values.h": "struct Values {\n  int n() const { return 1; }\n};\nconstexpr char kShell[] = R\"sh(f() {\n}\n)sh\";\n",
        "b/double.h": bodies, "b/tools_test_support.h": '#include "b/double.h"\n',
        "a/alone.cc": "", "a/excused.cc": "", "a/nameless_test.cc": "// Many things.\n", "a/wrong_test.cc": "// Covers: gone.cc.\n",
        "b/open_test.cc": "// Covers: other.h, and more\n",
    }
    check = tool("check-tests")
    texts = {pathlib.PurePosixPath(name): text for name, text in texts.items()}
    faults, counts = check.check(texts, {"a table": ["a/excused.cc", "a/named.cc", "a/gone.cc"]})
    assert [line.split(",")[0].split(" that ")[0] for line in faults if line.startswith("src/")] == [
        "src/a/alone.cc: no test has its name or says", "src/a/nameless_test.cc: no source has its name", "src/a/wrong_test.cc: it says",
        "src/b/open_test.cc: its list of what it covers ends with no full stop"], faults
    assert sum(line.startswith("tools/check-tests: src/a/") for line in faults) == 2, faults
    assert counts == {"sources": 6, "named": 1, "covered": 3, "listed": 3}


def test_two_sources_of_one_name_are_found():
    paths = [pathlib.PurePosixPath(name) for name in (
        "src/a/socket.h", "src/a/socket.cc", "src/b/stream_socket.h", "src/c/socket.h", "apps/x/main.cc", "apps/y/main.cc")]
    assert [line.partition(" have")[0] for line in tool("check-tests").repeated(paths)] == ["socket.h: src/a/socket.h and src/c/socket.h"]


def test_each_picture_of_the_portal_was_made_by_its_program():
    program = tool("draw-portal")
    names = subprocess.run([ROOT / "tools/draw-portal", "--list"], capture_output=True, text=True, check=True).stdout.split()
    shown = re.findall(r"!\[[^\]]*\]\((\S+\.png)\)", (ROOT / "docs/monitoring/portal.md").read_text())
    assert sorted(names) == sorted(shown) == sorted(path.name for path in (ROOT / "docs/monitoring").glob("*.png"))
    story = (ROOT / "portal/stories/pictures.mjs").read_text()
    for name in names:
        assert f"'{name.removesuffix('.png')}': {{" in story
        assert (b"tEXt", program.MAKER) in program.chunks_of((ROOT / "docs/monitoring" / name).read_bytes()), "made by hand? see tools/draw-portal"


def test_a_picture_is_packed_anew_without_a_loss():
    program = tool("draw-portal")

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Two pixels a row, and what each of PNG's filters makes of them, by hand.
    rows = [[10, 20, 30, 40, 50, 60], [11, 22, 33, 44, 55, 66], [12, 23, 34, 45, 56, 67], [100] * 6, [90, 90, 90, 95, 200, 1]]
    filtered = [[0, *rows[0]], [1, 11, 22, 33, 33, 33, 33], [2, 1, 1, 1, 1, 1, 1], [3, 94, 89, 83, 28, 22, 17], [4, 246, 246, 246, 5, 110, 167]]
    png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 5, 8, 2, 0, 0, 0))
           + chunk(b"IDAT", zlib.compress(bytes(sum(filtered, [])))) + chunk(b"IEND", b""))
    assert [list(row) for row in program.rows_of(png)] == rows
    packed = program.smaller(png)
    assert program.rows_of(packed) == program.rows_of(png)
    assert [kind for kind, _ in program.chunks_of(packed)] == [b"IHDR", b"tEXt", b"IDAT", b"IEND"]


def test_wide_prose_is_wrapped_and_nothing_else_is_touched():
    wrapped = tool("wrap-pages").wrapped
    words = " ".join(["- an item of `code` and words"] + ["word"] * 40 + ["# no", "heading"] + ["word"] * 40)
    text = f"# {words}\n\n| {words} |\n\n```sh\n{words}\n```\n\n{words}\n  goes on\n- short\n"
    new = wrapped(text)
    assert new.split() == text.split() and wrapped(new) == new
    before, prose = new.split("```\n\n")
    assert before == text.split("```\n\n")[0], "a heading, a table and code have what width they need"
    lines = prose.split("\n")
    assert all(len(line) <= 160 for line in lines[:-2]) and all(line.startswith("  ") for line in lines[1:-2]), lines
    assert not any(line.strip().startswith("#") for line in lines) and lines[-2] == "- short"
