"""Lookup of compilers: g++ for the CPU engine and the bindings, nvcc for CUDA."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tile2cu_runtime import paths
from tile2cu_runtime.errors import CompileError


@dataclass(frozen=True)
class Compiler:
    """A compiler: its path, and its version string."""

    path: str
    version: str


def find_gxx() -> Compiler:
    """TILE2CU_CXX, else g++ on PATH. Errors: T2C-R010 when there is none."""
    wanted = os.environ.get("TILE2CU_CXX") or "g++"
    path = shutil.which(wanted)
    if path is None:
        raise CompileError(
            "T2C-R010",
            f"{wanted} not found",
            command=f"{wanted} --version",
            help="apt-get install g++, or set TILE2CU_CXX to a compiler",
        )
    return _identified(path, os.stat(path).st_mtime_ns)


def find_nvcc() -> Compiler:
    """nvcc of CUDA_HOME, of PATH, of the PyPI packages, of /usr/local/cuda. Errors: T2C-R010 when there is none."""
    path = next((path for path in _nvcc_candidates() if os.access(path, os.X_OK)), None)
    if path is None:
        raise CompileError(
            "T2C-R010",
            "nvcc not found",
            command="nvcc --version",
            help="pip install 'cuda-toolkit[nvcc,cccl]==13.0.*', put nvcc on PATH, or set CUDA_HOME",
        )
    return _identified(path, os.stat(path).st_mtime_ns)


def find_nvdisasm() -> str:
    """The path of nvdisasm: of PATH, or beside an nvcc. Errors: T2C-R010 when there is none."""
    beside = [str(Path(path).with_name("nvdisasm")) for path in _nvcc_candidates()]
    if found := shutil.which("nvdisasm"):
        return str(found)
    for path in beside:
        if os.access(path, os.X_OK):
            return path
    raise CompileError(
        "T2C-R010",
        "there is no nvdisasm",
        command="nvdisasm --version",
        help="pip install 'nvidia-cuda-nvdisasm==13.*', or put a CUDA toolkit's nvdisasm on PATH",
    )


def cutlass_include() -> Path:
    """The folder of CUTLASS's headers: TILE2CU_CUTLASS or CUTLASS_PATH, else the package nvidia-cutlass.

    Errors: T2C-R010 when there is none.
    """
    folders = [Path(root) for name in ("TILE2CU_CUTLASS", "CUTLASS_PATH") if (root := os.environ.get(name))]
    spec = importlib.util.find_spec("cutlass_library")  # locates the package without importing it
    folders += [Path(folder, "source") for folder in (spec.submodule_search_locations or ())] if spec else []
    for folder in (each for root in folders for each in (root / "include", root)):
        if (folder / "cute" / "tensor.hpp").is_file():
            return folder
    raise CompileError(
        "T2C-R010",
        "the headers of CUTLASS, which this kernel includes, were not found",
        command="echo $CUTLASS_PATH",
        help="pip install 'tile2cu[cutlass]', or set CUTLASS_PATH to a checkout",
    )


def composable_kernel_include() -> Path:
    """The folder of Composable Kernel's headers: TILE2CU_CK or CK_PATH, a ROCm installation, or .ck of this checkout.

    Errors: T2C-R010 when there is none.
    """
    named = [Path(root) for name in ("TILE2CU_CK", "CK_PATH", "ROCM_PATH") if (root := os.environ.get(name))]
    roots = (*named, Path("/opt/rocm"), paths.headers_dir().parent / ".ck")
    for folder in (each for root in roots for each in (root / "include", root)):
        if (folder / "ck_tile" / "core.hpp").is_file():
            return folder
    raise CompileError(
        "T2C-R010",
        "the headers of Composable Kernel (ck_tile), which this kernel includes, were not found",
        command="echo $CK_PATH",
        help="install ROCm's composablekernel-dev, or set CK_PATH to a checkout; docs/ck.md has others",
    )


def cudart_dir(nvcc: Compiler) -> Path:
    """The folder with libcudart_static.a. Queries nvcc for its root: the nvcc on PATH may be a wrapper or a link."""
    answer = subprocess.run(
        [nvcc.path, "--dryrun", "-x", "cu", "-c", os.devnull], capture_output=True, encoding="utf-8", errors="replace"
    )
    top = next((line[7:] for line in answer.stderr.splitlines() if line.startswith("#$ TOP=")), "")
    # Toolkits have lib64, the PyPI packages lib.
    for folder in ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"):
        if (found := Path(top, folder).resolve() / "libcudart_static.a").is_file():
            return found.parent
    raise CompileError(
        "T2C-R010",
        f"libcudart_static.a not found for {nvcc.path}",
        command=f"{nvcc.path} --dryrun -x cu -c /dev/null",
        output=answer.stderr,
        help="pip install 'cuda-toolkit[nvcc,cccl]==13.0.*'",
    )


def _nvcc_candidates() -> Iterator[str]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield os.path.join(home, "bin", "nvcc")
    if on_path := shutil.which("nvcc"):
        yield on_path
    # The PyPI packages share the namespace package `nvidia`; find_spec does not import it.
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for toolkit in sorted(Path(folder).glob("cu*"), reverse=True):
            yield str(toolkit / "bin" / "nvcc")
    yield "/usr/local/cuda/bin/nvcc"


@functools.lru_cache
def _identified(path: str, modified: int) -> Compiler:
    """The compiler with its version, cached until the file changes."""
    answer = subprocess.run([path, "--version"], capture_output=True, encoding="utf-8", errors="replace")
    if answer.returncode:
        raise CompileError("T2C-R010", f"{path} does not run", command=f"{path} --version", output=answer.stderr)
    return Compiler(path, answer.stdout.strip())
