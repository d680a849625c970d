"""What a contender's name means: NAME[+SETTING…], as tutti+exact or eager+tuned+contiguous."""
import os
import pathlib
import subprocess

import allocators
import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

KINDS = ("tutti", "eager", "compile", "graph")
# As PyTorch's tuning guide has them: each thread on a core of its own, and a thread without work sleeps after a millisecond.
INTEL_OPENMP = {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}
INTEL_OPENMP_PACKAGE = "intel-openmp==2026.2.0"
BINDING = ("iomp", "bound")
SETTINGS = {
    **allocators.SETTINGS,
    "iomp": "Intel's OpenMP in place of GNU's, with each thread bound to a core",
    "bound": "GNU's OpenMP with each thread bound to a core",
    "contiguous": "NCHW in place of channels-last",
    "autotune": "of compile, on the CPU: torch.compile's mode max-autotune, which it has on a GPU anyway",
    "fp16": "on a GPU fp16 with a scaled loss in place of bf16: cuDNN's batch-norm knows fp16 alone",
    "dali": "on a GPU, with --data: DALI's pipeline with nvJPEG in place of torchvision's DataLoader",
    "exact": "of tutti: products of convolutions as they are, none by Winograd's patches",
}

AVX2 = machine.AVX2 | {"CXX": str(HERE / "g++-avx2")}  # which Inductor compiles with


class Unknown(ValueError):
    """A name that means nothing, or nothing here."""


def parse(name):
    """(kind, [setting])"""
    kind, *settings = name.split("+")
    unknown = [setting for setting in settings if setting not in SETTINGS]
    if kind not in KINDS or unknown:
        raise Unknown(f"no contender \"{name}\": kinds are {', '.join(KINDS)}, settings {', '.join(SETTINGS)}")
    if ("exact" in settings) != (kind == "tutti" and bool(settings)):
        raise Unknown(f"\"{name}\": exact is tutti's setting, and its only one")
    if "autotune" in settings and kind != "compile":
        raise Unknown(f"\"{name}\": autotune is a setting of compile")
    return kind, settings


def defaults(device, precision, images):
    """Who is measured unless told otherwise, tutti first."""
    if device == "cuda":
        peers = ["eager", "graph", "graph+fp16", "compile"]
        return ["tutti", *peers, *(["graph+dali", "compile+dali"] if images else [])]
    bound = [] if images else ["eager+tcmalloc+iomp", "eager+tcmalloc+bound", "compile+tcmalloc+iomp"]
    peers = ["eager", "eager+tuned", "eager+jemalloc", "eager+tcmalloc", "compile+tuned", "compile+tcmalloc", *bound]
    return ["tutti", "tutti+exact", *peers] if precision == "bf16" else ["tutti", *peers, "eager+tuned+contiguous"]


def environment(settings, isa, cache):
    """Returns the variables of a contender's process. cache: the folder where torch.compile keeps what it made."""
    found = {"TORCHINDUCTOR_CACHE_DIR": str(cache / (isa or "native"))}
    if isa == "avx2":
        found |= AVX2
    if "bound" in settings:
        found["GOMP_CPU_AFFINITY"] = " ".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    for setting in settings:
        if setting in allocators.SETTINGS:
            found = allocators.joined(found, allocators.environment(setting))
        elif setting == "iomp":
            found = allocators.joined(found, INTEL_OPENMP | {"LD_PRELOAD": _intel_openmp()})
    return found


def _intel_openmp():
    """The path of Intel's OpenMP from PyPI, which the first call installs (5 MB)."""
    about = f"{INTEL_OPENMP_PACKAGE} from PyPI (5 MB)"
    made = subprocess.run([ROOT / "tools" / "python-environment", INTEL_OPENMP_PACKAGE.replace("==", "-"), about,
                           INTEL_OPENMP_PACKAGE], stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise Unknown(f"{INTEL_OPENMP_PACKAGE} of PyPI could not be installed")
    return str(pathlib.Path(made.stdout.strip()).parents[1] / "lib/libiomp5.so")
