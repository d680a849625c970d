"""Settings of a peer's memory: which library gives it, and what of it goes back to the system. What goes back comes again as pages that
the kernel clears one by one, which is what each of these avoids, and keeps in huge pages."""
import pathlib

SETTINGS = {
    "tuned": "glibc's malloc returns no memory to the system, and all of it lies in huge pages",
    "jemalloc": "jemalloc, which returns no memory to the system, with huge pages",
    "tcmalloc": "tcmalloc, which returns no memory to the system, with huge pages",
}
VARIABLES = {
    "tuned": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 28),
              "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "THP_MEM_ALLOC_ENABLE": "1"},
    # Decays of -1, and no arena of its own for what is large: the settings of PyTorch's tuning guide (oversize_threshold:1, decays
    # of 9e9) give that arena's memory back at once with jemalloc 5.3, 74,000 page faults a step of ResNet-50 where these have 3.
    "jemalloc": {"MALLOC_CONF": "oversize_threshold:0,background_thread:true,metadata_thp:auto,thp:always,dirty_decay_ms:-1,"
                                "muzzy_decay_ms:-1", "THP_MEM_ALLOC_ENABLE": "1"},
    "tcmalloc": {"TCMALLOC_RELEASE_RATE": "0", "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": str(1 << 40), "THP_MEM_ALLOC_ENABLE": "1"},
}
LIBRARIES = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


class Missing(ValueError):
    """A library that is not on this machine."""


def environment(setting):
    """The variables of a process that has it."""
    name = LIBRARIES.get(setting)
    if name is None:
        return VARIABLES[setting]
    for folder in FOLDERS:
        if (pathlib.Path(folder) / name).exists():
            return VARIABLES[setting] | {"LD_PRELOAD": str(pathlib.Path(folder) / name)}
    raise Missing(f"no {name} on this machine (tools/setup benchmark)")


def joined(first, second):
    """The variables of both; one that holds a list has what both say."""
    lists = {name: f"{first[name]}:{second[name]}" for name in ("LD_PRELOAD", "GLIBC_TUNABLES") if name in first and name in second}
    return first | second | lists
