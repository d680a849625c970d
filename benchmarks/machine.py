"""What a table was measured on, in words."""
import datetime
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = {"amx_bf16": "AMX", "avx512_bf16": "AVX-512 BF16", "avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}
# Holds tutti, libtorch, oneDNN and MKL to what a processor with AVX2 and FMA has.
AVX2 = {"TUTTI_CPU_CAPABILITY": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def _cpuinfo():
    lines = (line.partition(":") for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def has_bf16():
    """Whether bf16's products are the processor's own."""
    flags = _cpuinfo().get("flags", "").split()
    return "avx512_bf16" in flags or "amx_bf16" in flags


def processor():
    info = _cpuinfo()
    flags = info.get("flags", info.get("Features", "")).split()
    best = next((word for flag, word in KINDS.items() if flag in flags), "no vectors known here")
    return (f"{info.get('model name', 'a processor')} (family {info.get('cpu family', '?')}, model {info.get('model', '?')}; "
            f"{best}), {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores")


def gpu():
    try:
        found = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], text=True,
                               stdout=subprocess.PIPE, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no GPU"
    return "; ".join(found.stdout.splitlines())


def heading(device="cpu", isa=None):
    """Lines for above a table: the command, the machine, its load, the day."""
    where = processor() + (f"; {gpu()}" if device == "cuda" else "")
    held = f", held to {isa.upper()}" if isa else ""
    program = pathlib.Path(sys.argv[0]).resolve()
    program = program.relative_to(ROOT) if program.is_relative_to(ROOT) else program
    return (f"`{shlex.join([str(program), *sys.argv[1:]])}`\n\n"
            f"{where}{held}; load {os.getloadavg()[0]:.1f}; {datetime.date.today()}\n")
