"""Story: libtutti_cuda.so, the trainer's kernels for GPUs, is built where there is nvcc and no GPU."""
import pathlib
import subprocess

from conftest import ROOT


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def test_the_kernels_for_gpus_compile_and_link(tmp_path):
    python = pathlib.Path(run(ROOT / "tools/cuda-environment").strip())
    [nvcc] = python.parent.parent.glob("lib/python3*/site-packages/nvidia/cu13/bin/nvcc")
    libtorch = run(ROOT / "tools/setup", "libtorch").strip()
    run("cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=/usr/bin/g++", "-DCMAKE_C_COMPILER=/usr/bin/gcc",
        "-DTUTTI_PLATFORM=OFF", "-DTUTTI_TESTS=OFF", f"-DTUTTI_LIBTORCH={libtorch}", f"-DTUTTI_NVCC={nvcc}")
    run("nice", "ninja", "-C", tmp_path, "tutti_cuda")
    library = tmp_path / "lib/libtutti_cuda.so"
    assert " T tutti_cuda\n" in run("nm", "-D", "--defined-only", library), "what the programs ask it for"
    assert ".nv_fatbin" in run("readelf", "-S", "-W", library), "code for GPUs"
