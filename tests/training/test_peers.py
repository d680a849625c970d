"""What the names and options of the benchmarks' peers mean: settings of steps, memory and versions of loaders."""
import argparse
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT

sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/train_step")]

import allocators  # noqa: E402
import settings  # noqa: E402

LOADER = ROOT / "benchmarks/loader"


def loaders_compare():
    source = importlib.machinery.SourceFileLoader("loaders_compare", str(LOADER / "compare"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(source.name, source))
    source.exec_module(module)
    return module


def test_autotune_is_a_setting_of_compile_beside_others():
    assert settings.parse("compile+tuned+autotune") == ("compile", ["tuned", "autotune"])
    for name in ("eager+autotune", "tutti+autotune", "graph+autotune"):
        with pytest.raises(settings.Unknown):
            settings.parse(name)


def test_what_two_settings_preload_goes_into_one_variable(monkeypatch, tmp_path):
    (tmp_path / "libtcmalloc_minimal.so.4").touch()
    monkeypatch.setattr(allocators, "FOLDERS", [str(tmp_path)])
    monkeypatch.setattr(settings, "_intel_openmp", lambda: "/its/libiomp5.so")
    found = settings.environment(["tcmalloc", "iomp"], None, tmp_path)
    assert found["LD_PRELOAD"] == f"{tmp_path}/libtcmalloc_minimal.so.4:/its/libiomp5.so"
    assert found["TCMALLOC_RELEASE_RATE"] == "0" and found["KMP_BLOCKTIME"] == "1"
    with pytest.raises(allocators.Missing, match="no libjemalloc.so.2 on this machine"):
        settings.environment(["jemalloc"], None, tmp_path)


def test_each_peer_of_the_loader_is_there_once_with_each_memory(tmp_path):
    compare = loaders_compare()
    options = argparse.Namespace(build=pathlib.Path("build"), python="python", threads=2, shards=None, isa="avx2",
                                 memory=compare.kinds_of_memory("plain,tuned"))
    planes, pixels = compare.commands(tmp_path, options).values()
    assert list(planes) == ["tutti, fp32", "full decode, libjpeg-turbo", "torchvision, PIL", "torchvision, PIL, tuned", "torchvision, tensors",
                            "torchvision, tensors, tuned", "DALI, CPU", "DALI, CPU, tuned"]
    assert list(pixels) == ["tutti, bf16", "full decode, libjpeg-turbo", "DALI, CPU, fp16", "DALI, CPU, fp16, tuned"]
    tuned = compare.variables(planes["DALI, CPU, tuned"][1], options)
    assert tuned["MALLOC_MMAP_MAX_"] == "0" and tuned["TUTTI_CPU_CAPABILITY"] == "avx2"
    assert "glibc.cpu.hwcaps=" in tuned["GLIBC_TUNABLES"] and ":glibc.malloc.hugetlb=1" in tuned["GLIBC_TUNABLES"]
    assert "MALLOC_MMAP_MAX_" not in compare.variables(planes["DALI, CPU"][1], options)
    with pytest.raises(argparse.ArgumentTypeError, match="mimalloc"):
        compare.kinds_of_memory("plain,mimalloc")


@pytest.mark.parametrize("asked, name, torchvision", [
    ([], "loader-2", ["torchvision==0.26.0"]),
    (["--torch", "2.15.0"], "loader-2-for-torch-2.15.0", ["torchvision", "torch==2.15.0"])])
def test_the_loaders_peers_have_the_torch_that_is_asked_for(asked, name, torchvision, tmp_path):
    """Played by programs that say what they are asked."""
    (tmp_path / "benchmarks/loader").mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    program = tmp_path / "benchmarks/loader/environment"
    program.write_text((LOADER / "environment").read_text())
    for tool in ("torch-environment", "python-environment"):
        (tmp_path / "tools" / tool).write_text(f'#!/bin/sh\necho "{tool} $@" >>"{tmp_path}/asked"\necho /python-of-{tool}\n')
    for file in (program, *(tmp_path / "tools").iterdir()):
        file.chmod(0o755)
    said = subprocess.run([program, *asked], check=True, capture_output=True, text=True).stdout
    assert said.strip() == "/python-of-python-environment"
    torch, python = (line.split() for line in (tmp_path / "asked").read_text().splitlines())
    assert torch == ["torch-environment", *asked]
    assert python[:4] == ["python-environment", "--on", "/python-of-torch-environment", name]
    assert python[python.index("DALI") + 1:python.index("pillow")] == torchvision
