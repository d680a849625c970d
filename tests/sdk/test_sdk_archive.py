"""The archive of a code folder that tutti.ml makes holds what the command line's holds: both are sent to a service, over odd trees."""
import io
import itertools
import os
import pathlib
import random
import subprocess
import tarfile

import pytest

from sdk_clients import client, client_of, warn_anew, write  # noqa: F401
from tutti.ml import command
from tutti.ml._archive.git_code import is_git_code, parse_git_code
from tutti.ml._archive.ignore import IgnoreRules, matcher, matches_path
from tutti.ml._archive.snapshot import files_of_code, pack_code
from tutti.ml.entities import CommandComponent
from tutti.ml.exceptions import ValidationException


def entries(archive):
    """name, kind, mode, link and bytes of each entry, in the archive's order."""
    done = subprocess.run(["zstd", "-dcq", str(archive)], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout), errors="surrogateescape") as tar:
        return [(entry.name, entry.type, entry.mode, entry.linkname, entry.mtime, entry.uid, entry.uname,
                 tar.extractfile(entry).read() if entry.isreg() else b"") for entry in tar]


def odd_tree(folder):
    """Names, kinds and modes that archives get wrong."""
    write(folder, {"train.py": "print(1)\n", "empty": "", "a b/ä ö.txt": "x", "sub/deep/er/file.log": "x", "sub/keep.log": "x", "build/out": "x",
                   "sub/build": "a file", "data/raw/1": "x", "data/rawer/2": "x", ".hidden": "x", "-dash": "x", ".env": "SECRET=1", "Sub/Case": "x",
                   "sub.txt": "sorts between sub and sub/", "x" * 120 + "/" + "y" * 150: "long", "env/pyvenv.cfg": "", "env/bin/x": "",
                   "conda/conda-meta/h": "", ".git/config": "", "sub/.git": "gitdir: elsewhere", "sub/.gitignore": "*\n", "café": "é"})
    (folder / "large").write_bytes(random.Random(5).randbytes(700_001))
    os.chmod(folder / "train.py", 0o755)
    os.chmod(folder / "empty", 0o400)
    (folder / "hollow").mkdir()
    (folder / "link").symlink_to("sub/keep.log")
    (folder / "sub/up").symlink_to("../train.py")
    (folder / "dangling").symlink_to("nothing")
    (folder / "to-folder").symlink_to("sub")
    pathlib.Path(os.fsdecode(os.fsencode(str(folder)) + b"/bytes-\xff\xc3")).write_text("no UTF-8")
    return folder


RULES = ["", "*.log\n!keep.log\n", "\ufeff*.log\n", "/build\ndata/raw\n", "build/\n", "sub/**\n", "**/file.log\n", "[a-e]*\n!data/\n", "d?ta\n# x\n\n",
         "*\n!*.py\n", "[!a-z]*\n", "\\*\n", "a b/\n", "data/*\r\n", "/\n!\n", "**/deep/**\n", "[\u00e4-\u00f6]*\n", "caf[^a-z]*\n", "x*/y*\n"]


@pytest.mark.parametrize("number, rules", enumerate(RULES))
def test_both_send_the_same(client, service, tmp_path, number, rules):
    tree = odd_tree(tmp_path / "tree")
    (tree / (".amlignore" if number % 2 else ".gitignore")).write_text(rules, encoding="utf-8")
    (tmp_path / "job.yml").write_text("command: 'true'\ncode: tree\nenvironment: host\ncompute: local\n")
    of_cli = service.wait(service.submit(tmp_path / "job.yml"))["snapshot"]
    mine = client.jobs.create_or_update(command(command="true", code=tree, environment="host", compute="local"))
    ended = service.wait(mine.name)
    assert ended["state"] == "Completed", ended["reason"]
    archive = next((service.home / "snapshots").glob(f"*{service.job(mine.name)['snapshot'][7:]}*"))
    theirs = next((service.home / "snapshots").glob(f"*{of_cli[7:]}*"))
    assert entries(archive) == entries(theirs)


def test_both_go_by_the_repository_that_the_code_lies_in(client, service, tmp_path):
    write(tmp_path, {"ü/.git/info/exclude": "of-me\n", "ü/.gitignore": "data/\n/src/*.pt\n[[:upper:]]*\n", "ü/src/.gitignore": "!README\n",
                     "ü/src/deep/.gitignore": "!data/\n", "ü/src/data/a": "", "ü/src/deep/data/b": "", "ü/src/a.pt": "", "ü/src/deep/a.pt": "",
                     "ü/src/README": "", "ü/src/LICENSE": "", "ü/src/of-me": "", "ü/src/train.py": "", "ü/src/__pycache__/train.pyc": "",
                     "job.yml": "command: 'true'\ncode: ü/src\nenvironment: host\ncompute: local\n"})
    names = [service.submit(tmp_path / "job.yml"),
             client.jobs.create_or_update(command(command="true", code=tmp_path / "ü/src", environment="host", compute="local")).name]
    found = [entries(next((service.home / "snapshots").glob(f"*{service.job(name)['snapshot'][7:]}*"))) for name in names]
    assert [entry[0] for entry in found[0]] == [".gitignore", "README", "deep", "deep/.gitignore", "deep/a.pt", "deep/data", "deep/data/b", "train.py"]
    assert len(found) == 2 and found[0] == found[1]


def test_what_stands_beside_the_code_is_the_same(client, service, tmp_path):
    write(tmp_path, {"src/a.py": "print(open('shared/x').read(), open('one').read())\n", "lib/shared/x": "of shared", "lib/shared/skip.log": "",
                     "lib/shared/.amlignore": "*.log\n", "one": "of one",
                     "p.yml": "type: pipeline\njobs: {a: {component: c.yml}}\n",
                     "c.yml": "type: command\ncommand: python3 a.py\ncode: src\nenvironment: host\nadditional_includes: [lib/shared, one]\n"})
    of_cli = service.submit(tmp_path / "p.yml")
    service.wait(of_cli)
    part = CommandComponent(command="python3 a.py", code=str(tmp_path / "src"), environment="host",
                            additional_includes=[str(tmp_path / "lib/shared"), str(tmp_path / "one")])
    from tutti.ml import dsl

    @dsl.pipeline()
    def line():
        a = part()

    mine = client.jobs.create_or_update(line())
    service.wait(mine.name)
    found = [next((service.home / "snapshots").glob(f"*{service.job(f'{name}.a')['snapshot'][7:]}*")) for name in (of_cli, mine.name)]
    assert entries(found[0]) == entries(found[1])
    assert "of shared of one" in service.log_text(f"{mine.name}.a", 0)


@pytest.mark.parametrize("make, words", [
    (lambda tree: (tree / "out").symlink_to("../elsewhere"), "outside of the code folder"),
    (lambda tree: (tree / "absolute").symlink_to("/etc/passwd"), "outside of the code folder"),
    (lambda tree: os.mkfifo(tree / "pipe"), "no file, folder or link")])
def test_both_refuse_the_same_with_the_same_words(service, client, tmp_path, make, words):
    tree = write(tmp_path / "tree", {"a": "x"})
    make(tree)
    (tmp_path / "job.yml").write_text("command: 'true'\ncode: tree\nenvironment: host\n")
    refused = service.cli("job", "create", tmp_path / "job.yml")
    with pytest.raises(ValidationException) as raised:
        client.jobs.create_or_update(command(command="true", code=tree, environment="host"))
    assert words in str(raised.value) and str(raised.value) in refused.stderr


def test_equal_content_is_an_equal_archive_wherever_it_lies(tmp_path):
    one, other = odd_tree(tmp_path / "one"), odd_tree(tmp_path / "two" / "deeper")
    os.utime(other / "train.py", (1, 1))
    assert pack_code(str(one), tmp_path / "a").hash == pack_code(str(other), tmp_path / "b").hash
    (other / "train.py").write_text("print(2)\n")
    assert pack_code(str(one), tmp_path / "a").hash != pack_code(str(other), tmp_path / "b").hash


@pytest.mark.parametrize("size", [0, 1, (128 << 10) - 1024, 128 << 10, (128 << 10) + 1, 5_000_000])
def test_frames_are_read_by_zstd(tmp_path, size):
    write(tmp_path, {"src/x": ""})
    (tmp_path / "src/x").write_bytes(bytes(size))
    snapshot = pack_code(str(tmp_path / "src"), tmp_path / "code.tar.zst")
    assert entries(tmp_path / "code.tar.zst")[0][-1] == bytes(size) and snapshot.content_bytes == size


def test_secrets_and_a_home_are_told(tmp_path, monkeypatch):
    from tutti.ml._archive.snapshot import sends_a_home
    write(tmp_path, {".env": "", "sub/.aws/credentials": "", "sub/id_rsa": "", "credentials": ""})
    assert pack_code(str(tmp_path), tmp_path.with_name("a")).secret_files == [".env", "sub/.aws/credentials", "sub/id_rsa"]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sends_a_home(str(tmp_path))
    write(tmp_path, {".amlignore": ""})
    assert not sends_a_home(str(tmp_path))


def test_a_single_file_and_what_is_not_there(tmp_path):
    write(tmp_path, {"a.py": ""})
    assert files_of_code(str(tmp_path / "a.py")) == ["a.py"]
    with pytest.raises(ValidationException, match="code: /no/such does not exist"):
        files_of_code("/no/such")
    with pytest.raises(ValidationException, match="all of this machine"):
        files_of_code("/")
    with pytest.raises(ValidationException, match='would both be "a.py"'):
        files_of_code(str(tmp_path), [str(tmp_path / "a.py")])


@pytest.mark.parametrize("pattern, path, matches", [
    (b"*.log", b"a.log", True), (b"*.log", b"d/a.log", False), (b"a?c", b"a/c", False), (b"[!a-c]x", b"bx", False), (b"**/x", b"x", True),
    (b"a/**/b", b"a/b", True), (b"a/**", b"a/x/y", True), (b"\\*", b"*", True), (b"", b"a", False), (b"[a-\xff]", b"\xc3", True), (b"[]a]", b"]", True)])
def test_patterns(pattern, path, matches):
    assert matches_path(pattern, path) == matches


def test_patterns_that_are_made_to_be_slow_are_quick():
    assert not matches_path(b"*a" * 60 + b"b", b"a" * 3000)


def test_rules_of_bytes():
    rules = IgnoreRules(b"\xef\xbb\xbf*.log\n!keep.log \r\nbuild/\n/top\n")
    assert [rules.decide(*asked) for asked in [(b"a.log", False), (b"d/keep.log", False), (b"build", False), (b"x/build", True), (b"x/top", True)]] == [
        True, False, None, True, None]


@pytest.mark.parametrize("code, parts", [
    ("git+https://h/r.git@v1#subdirectory=s", ("https://h/r.git", "v1", "s")), ("https://h/r.git#main:s", ("https://h/r.git", "main", "s")),
    ("git@h:me/r.git", ("ssh://git@h/me/r.git", "", "")), ("git+ssh://git@h/r.git@1.0", ("ssh://git@h/r.git", "1.0", ""))])
def test_addresses_of_git(code, parts):
    assert is_git_code(code) and tuple(parse_git_code(code)) == parts


@pytest.mark.parametrize("code", ["git+ext::sh -c x", "git+https://h/r.git@--upload-pack=x", "git+https://h/r.git#subdirectory=../x",
                                  "git+https://user:pw@h/r.git", "git+https://token@h/r.git", "git@h"])
def test_addresses_that_are_none(code):
    with pytest.raises(ValidationException):
        parse_git_code(code)


def test_random_trees_and_rules_are_taken_alike(service, client, tmp_path):
    """One archive of each for forty trees that differ: names are short, so patterns hit."""
    chance = random.Random(7)
    names = ["a", "b", "ab", "a.b", "[a]", "a*", "ba"]
    atoms = ["a", "b", "*", "?", "[ab]", "[!a]", "**", "/", ".", "!", "\\a", "[", "]"]
    jobs = []
    for number in range(40):
        tree = tmp_path / f"t{number}"
        for _ in range(12):
            place = tree.joinpath(*chance.choices(names, k=chance.randint(1, 3)))
            if not any(parent.is_file() for parent in place.parents) and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("x")
        rules = "\n".join("".join(chance.choices(atoms, k=chance.randint(1, 5))) for _ in range(chance.randint(1, 4)))
        (tree / ".amlignore").write_text(rules + "\n")
        jobs.append(f"  s{number}: {{command: 'true', code: t{number}, environment: host}}")
    (tmp_path / "p.yml").write_text("type: pipeline\ncompute: local\njobs:\n" + "\n".join(jobs))
    from tutti.ml import load_job
    pipelines = service.submit(tmp_path / "p.yml"), client.jobs.create_or_update(load_job(tmp_path / "p.yml")).name
    for name in pipelines:
        service.cli("job", "cancel", name)
    kept = sorted((service.home / "snapshots").glob("*.zst")) or sorted(path for path in (service.home / "snapshots").iterdir() if path.is_file())
    contents = [tuple(entries(path)) for path in kept]
    pairs = {key: len(list(group)) for key, group in itertools.groupby(sorted(contents))}
    alone = [key for key, count in pairs.items() if count != 2]
    assert not alone, [entry[0] for entry in alone[0]]


def test_folders_may_be_deeper_than_python_calls(tmp_path):
    deep = str(tmp_path / "code")
    for _ in range(1100):
        os.mkdir(deep)
        deep += "/d"
    try:
        assert len(files_of_code(str(tmp_path / "code"))) == 1099
        assert pack_code(str(tmp_path / "code"), tmp_path / "archive").hash
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "code")], check=True)  # shutil would call itself as deep


def test_quick_patterns_match_what_the_slow_ones_do():
    """matches_path follows all places of a pattern at once, as the command line's; `re` is quicker."""
    dice = random.Random(7)
    pieces = [b"*", b"**", b"**/", b"/", b"?", b"a", b"b", b".", b"[ab]", b"[!a]", b"[^/]", b"[/]", b"[a-\xff]", b"[]", b"[", b"\\*", b"\\", b"\n", b"\xff"]
    letters = [b"a", b"b", b"/", b".", b"*", b"\n", b"\xff", b"]", b"[", b"\\"]
    count = 0
    for _ in range(4000):
        pattern = b"".join(dice.choices(pieces, k=dice.randint(1, 6)))
        quick = matcher(pattern)
        for _ in range(12):
            path = b"".join(dice.choices(letters, k=dice.randint(0, 7)))
            wanted = matches_path(pattern, path)
            count += wanted
            assert bool(quick(path)) == wanted, (pattern, path)
    assert count > 1000


def test_patterns_of_many_stars_are_quick_as_rules_too():
    assert not IgnoreRules(b"*a" * 60 + b"b\n").decide(b"a" * 3000, False)
