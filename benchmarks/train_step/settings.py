"""What a contender's name means: NAME[+SETTING…], as tutti+exact or eager+tuned+contiguous."""
import os
import pathlib
import subprocess

import machine

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

KINDS = ("tutti", "eager", "compile", "graph")
# Which C library has the memory. A step takes and gives back gigabytes; what goes back to the system comes again as pages
# that the kernel clears one by one, which is what each of these avoids, and keeps in huge pages.
KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 28),
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "THP_MEM_ALLOC_ENABLE": "1"}
# Decays of -1, and no arena of its own for what is large: the settings of PyTorch's tuning guide (oversize_threshold:1, decays of
# 9e9) give that arena's memory back at once with jemalloc 5.3, 74,000 page faults a step of ResNet-50 where these have 3.
JEMALLOC = {"MALLOC_CONF": "oversize_threshold:0,background_thread:true,metadata_thp:auto,thp:always,dirty_decay_ms:-1,"
                           "muzzy_decay_ms:-1", "THP_MEM_ALLOC_ENABLE": "1"}
TCMALLOC = {"TCMALLOC_RELEASE_RATE": "0", "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": str(1 << 40),
            "THP_MEM_ALLOC_ENABLE": "1"}
# As PyTorch's tuning guide has them: each thread on a core of its own, and a thread without work sleeps after a millisecond.
INTEL_OPENMP = {"KMP_AFFINITY": "granularity=fine,compact,1,0", "KMP_BLOCKTIME": "1"}
INTEL_OPENMP_PACKAGE = "intel-openmp==2026.2.0"
PRELOADED = {"jemalloc": ("libjemalloc.so.2", JEMALLOC), "tcmalloc": ("libtcmalloc_minimal.so.4", TCMALLOC),
             "iomp": ("libiomp5.so", INTEL_OPENMP)}
BINDING = ("iomp", "bound")
SETTINGS = {
    "tuned": "glibc's malloc returns no memory to the system, and all of it lies in huge pages",
    "jemalloc": "jemalloc, which returns no memory to the system, with huge pages",
    "tcmalloc": "tcmalloc, which returns no memory to the system, with huge pages",
    "iomp": "Intel's OpenMP in place of GNU's, with each thread bound to a core",
    "bound": "GNU's OpenMP with each thread bound to a core",
    "contiguous": "NCHW in place of channels-last",
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
    if "tuned" in settings:
        found |= KEPT
    if "bound" in settings:
        found["GOMP_CPU_AFFINITY"] = " ".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    libraries = []
    for setting in settings:
        if setting in PRELOADED:
            library, variables = PRELOADED[setting]
            libraries.append(str(_intel_openmp(library) if setting == "iomp" else _library(library)))
            found |= variables
    return found | ({"LD_PRELOAD": ":".join(libraries)} if libraries else {})


def _intel_openmp(library):
    """The path of Intel's OpenMP from PyPI, which the first call installs (5 MB)."""
    about = f"{INTEL_OPENMP_PACKAGE} from PyPI (5 MB)"
    made = subprocess.run([ROOT / "tools" / "python-environment", INTEL_OPENMP_PACKAGE.replace("==", "-"), about,
                           INTEL_OPENMP_PACKAGE], stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise Unknown(f"{INTEL_OPENMP_PACKAGE} of PyPI could not be installed")
    return pathlib.Path(made.stdout.strip()).parents[1] / "lib" / library


def _library(name):
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"):
        if (pathlib.Path(folder) / name).exists():
            return pathlib.Path(folder) / name
    raise Unknown(f"no {name} on this machine (tools/setup benchmark)")
