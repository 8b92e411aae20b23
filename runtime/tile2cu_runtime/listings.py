"""What nvcc and nvdisasm make of an emitted source: its PTX, and its SASS, as text."""

from pathlib import Path

from tile2cu_runtime import cache, paths
from tile2cu_runtime.compile import cubin_command, run_compiler
from tile2cu_runtime.compilers import find_nvcc, find_nvdisasm
from tile2cu_runtime.errors import DeviceError
from tile2cu_runtime.resources import disassembled
from tile2cu_runtime.spec import Manifest


def ptx(manifest: Manifest, folder: Path) -> str:
    """nvcc's PTX of the kernels. Errors: T2C-R022 for an AMD target, T2C-R010 without nvcc."""
    return _made(manifest, folder, "kernel.ptx", "-ptx").read_text(encoding="utf-8")


def sass(manifest: Manifest, folder: Path) -> str:
    """nvdisasm's SASS of the kernels. Errors: T2C-R022 for an AMD target, T2C-R010 without nvcc or nvdisasm."""
    return disassembled(find_nvdisasm(), _made(manifest, folder, "kernel.cubin", "-cubin"))


def _made(manifest: Manifest, folder: Path, name: str, option: str) -> Path:
    language, architecture = manifest.target.split(":")
    if language != "cuda":
        raise DeviceError("T2C-R022", f"{manifest.kernel} is for {manifest.target}; nvcc compiles for NVIDIA GPUs")
    whole = cubin_command(manifest.text_file, architecture=architecture, needs=manifest.needs, output=name)
    command = tuple(option if word == "-cubin" else word for word in whole)
    files = (manifest.text_file, manifest.header_file)

    def make(temporary: Path, place: Path) -> None:
        for file in files:
            (temporary / file).write_bytes((folder / file).read_bytes())
        run_compiler(command, temporary, f"the emitted source {manifest.text_file}")

    sources = [(folder / file).read_bytes() for file in files]
    key = cache.content_key(find_nvcc().version, cache.tree_key(paths.headers_dir()), *command, *sources)
    return cache.get_or_build("listings", key, make).folder / name
