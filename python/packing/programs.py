"""The wheels that bring tutti's programs, and which of them owns what (docs/decisions/100-wheels.md).

    tutti-client    tutti/__init__.py and what Python alone does: tutti.ml, tutti.core
    tutti           the rest of the package, horovod, and in tutti/bin the programs that need no libtorch and the portal
    tutti-train     in the same folder those that do; of one minor version of torch

The folder tutti/ of an environment is to the programs what build/ is: they find each other in bin/, kernels for GPUs in lib/, and in share/ the
package that they install for jobs.

Versions end with "+tutti": public indexes take no such version, so that no other project's tutti there is ever what a wheel of these requires.
"""
import pathlib
import platform
import re
import tempfile

from packing import grafting, wheel

CLIENT = "tutti-client"
LOCAL = "+tutti"
CLIENTS_FILES = ("__init__.py", "_forward.py", "_programs.py")
CLIENTS_FOLDERS = ("tutti/ml", "tutti/core")
PLAIN = ("tutti", "tutti-data", "tutti-link", "tutti-storage")
OF_TORCH = ("tutti-train", "tutti-score", "tutti-bench")
# From tutti/bin and tutti/lib: the folders of torch's wheel, and of those that it requires on machines with GPUs.
TORCHS = ("$ORIGIN/../../torch/lib", "$ORIGIN/../../nvidia/cu13/lib")
TORCHS_LIBRARIES = ("libtorch*.so", "libc10*.so", "libgomp.so.1", "libcudart.so.13")


def console_scripts(scripts):
    return "[console_scripts]\n" + "".join(f"{name} = {function}\n" for name, function in scripts.items())


def client_files():
    yield from (wheel.File(f"tutti/{name}", (wheel.HERE / "tutti" / name).read_bytes()) for name in CLIENTS_FILES)
    yield from wheel.files_below(*CLIENTS_FOLDERS)


def pack_client(project, folder):
    version = project["version"] + LOCAL
    name = f"{CLIENT.replace('-', '_')}-{version}"
    metadata = [f"Name: {CLIENT}", f"Version: {version}", "Summary: Azure ML's Python SDK for tutti's service", "Requires-Python: >=3.9",
                "Requires-Dist: PyYAML"]
    target, about = folder / f"{name}-py3-none-any.whl", f"{name}.dist-info"
    wheel.write(target, [*client_files(), *wheel.about_files(about, metadata, "py3-none-any")], about)
    return target


def starters(programs):
    """What pip makes in the environment's bin/ for them."""
    return {name: "tutti._programs:main" for name in programs}


def torch_of(build):
    """The minor version of torch that a build's programs need: their C++ interface to it changes with it."""
    folder = re.search(r"^TUTTI_LIBTORCH:PATH=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    version = re.search(r"^__version__ = '(\d+\.\d+)\.", (pathlib.Path(folder) / "version.py").read_text(), re.MULTILINE)[1]
    return f"{version}.*"


def plain_files(project, build, scratch):
    owned = {file.name for file in client_files()}
    yield from (file for file in wheel.files_below("tutti", "horovod") if file.name not in owned)
    yield wheel.File("tutti/comm/libtutti_comm.so", (build / "lib/libtutti_comm.so").read_bytes(), True)
    yield wheel.File("tutti/include/tutti_comm.h", (wheel.HERE.parent / "src/runtime/comm/capi/tutti_comm.h").read_bytes())
    yield from (wheel.File(f"tutti/bin/{name}", (build / "bin" / name).read_bytes(), True) for name in PLAIN)
    portal = build / "bin/portal"  # the page that the service serves
    yield from (wheel.File(f"tutti/bin/{path.relative_to(build / 'bin')}", path.read_bytes()) for path in sorted(portal.rglob("*")) if path.is_file())
    # What is loaded when it is needed, and not linked; the programs look for it in lib/ beside them.
    yield wheel.File("tutti/bin/lib/libcurl.so.4", grafting.library_of_this_machine("libcurl.so.4").read_bytes(), True)
    horovod, = (build / "share/tutti").glob("horovod-*.whl")
    for_jobs = grafting.graft(horovod, scratch / "for-jobs")
    yield wheel.File(f"tutti/share/tutti/{for_jobs.name}", for_jobs.read_bytes())


def pack_plain(project, build, folder, scratch):
    version = project["version"] + LOCAL
    metadata = ["Name: tutti", f"Version: {version}", "Summary: distributed training of deep-learning models: command line, service, launcher, collectives",
                "Requires-Python: >=3.9", *(f"Requires-Dist: {name}" for name in (*project["dependencies"], f"{CLIENT}=={version}")),
                "Provides-Extra: train", f'Requires-Dist: tutti-train=={version}; extra == "train"']
    entry_points = console_scripts({**project["scripts"], **starters(PLAIN)})
    for group, entries in project["entry-points"].items():
        entry_points += f"\n[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
    return pack(f"tutti-{version}", metadata, entry_points, plain_files(project, build, scratch), folder, scratch)


def train_files(build, scratch):
    for name in OF_TORCH:
        yield wheel.File(f"tutti/bin/{name}", grafting.with_rpath(build / "bin" / name, TORCHS, scratch), True)
    kernels = build / "lib/libtutti_cuda.so"
    if kernels.exists():  # where the build had nvcc
        yield wheel.File("tutti/lib/libtutti_cuda.so", grafting.with_rpath(kernels, TORCHS, scratch), True)


def pack_train(project, build, folder, scratch):
    version = project["version"] + LOCAL
    metadata = ["Name: tutti-train", f"Version: {version}", "Summary: tutti's trainer of image networks, on libtorch", "Requires-Python: >=3.9",
                f"Requires-Dist: tutti=={version}", f"Requires-Dist: torch=={torch_of(build)}"]
    return pack(f"tutti_train-{version}", metadata, console_scripts(starters(OF_TORCH)), train_files(build, scratch), folder, scratch, TORCHS_LIBRARIES)


def pack(name, metadata, entry_points, files, folder, scratch, others=()):
    """One of the two wheels; `others`: libraries that are another wheel's."""
    tag, about = f"py3-none-linux_{platform.machine()}", f"{name}.dist-info"
    bare = scratch / f"{name}-{tag}.whl"
    wheel.write(bare, [*files, *wheel.about_files(about, metadata, tag, entry_points)], about, wheel.STORED)
    return grafting.graft(bare, folder, others)


def pack_all(project, build, folder):
    build = build.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for former in [*folder.glob("tutti-*.whl"), *folder.glob("tutti_client-*.whl"), *folder.glob("tutti_train-*.whl")]:
        former.unlink()
    with tempfile.TemporaryDirectory(prefix="tutti-wheels-") as scratch:
        scratch = pathlib.Path(scratch)
        for made in (pack_client(project, folder), pack_plain(project, build, folder, scratch), pack_train(project, build, folder, scratch)):
            grafting.check_paths(made, build)
            print(f"{made}  {made.stat().st_size / 1e6:.1f} MB")
