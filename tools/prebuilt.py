"""Builds and calls an emitted kernel with nothing but nvcc and ctypes.

A folder with NAME.cu, NAME.h and NAME.json is all it takes, and headers/ to compile against: this is what a program
does that vendors the text. The tests and benchmarks on a GPU use it, so that they run where tile2cu is not installed.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADERS = Path(__file__).resolve().parents[1] / "headers"
C_TYPES = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


# headers/tl/status.h: a size is no multiple of what the text asks for; the device does not run the text's code
NOT_SUPPORTED, WRONG_DEVICE = 3, 4


class LaunchError(RuntimeError):
    """The launcher answered with a `status` other than TL_OK."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True)
class Text:
    """An emitted kernel as its manifest describes it."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The folder's and the kernel's name."""
        return "-".join(self.path.with_suffix("").parts[-2:])

    @property
    def tensors(self) -> list[Mapping[str, Any]]:
        """The tensor arguments, in the launcher's order."""
        return [argument for argument in self.manifest["arguments"] if argument["kind"] == "tensor"]

    @property
    def sizes(self) -> list[str]:
        """Names of the sizes that the text takes at run time."""
        return [argument["name"] for argument in self.manifest["arguments"] if argument["kind"] == "size"]

    def shapes(self, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The tensors' shapes, in elements, for these sizes."""
        return [tuple(extent(entry, sizes) for entry in tensor["shape"]) for tensor in self.tensors]


@dataclass(frozen=True, kw_only=True)
class Prebuilt(Text):
    """An emitted kernel, compiled and loaded."""

    entry: Callable[..., int]
    workspace_size: Callable[..., int]

    def bind(self, tensors: Sequence[Any], values: Mapping[str, float], stream: int = 0) -> Callable[[], None]:
        """A call with these tensors, and the scalars and sizes by name. Raises LaunchError when the launcher does."""
        pointers = iter(tensors)
        arguments = [
            ctypes.c_void_p(pointer(next(pointers)))
            if argument["kind"] == "tensor"
            else C_TYPES[argument["dtype"]](values[argument["name"]])
            for argument in self.manifest["arguments"]
        ]
        sizes = [ctypes.c_int(int(values[name])) for name in self.sizes]
        workspace = self.workspace(self.workspace_size(*sizes))
        arguments += [ctypes.c_void_p(pointer(workspace)), ctypes.c_size_t(len(workspace)), ctypes.c_void_p(stream)]

        def call(workspace: Any = workspace) -> None:  # the workspace lives as long as the call
            if status := self.entry(*arguments):
                raise LaunchError(f"{self.label}: tl_status {status}", status)

        return call

    def workspace(self, bytes_: int) -> Any:
        """Memory of the GPU."""
        import torch

        return torch.empty(bytes_, dtype=torch.uint8, device="cuda")


def pointer(tensor: Any) -> int:
    """The address of a torch tensor or a NumPy array."""
    return int(tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.ctypes.data)


def extent(entry: int | str, sizes: Mapping[str, int]) -> int:
    """One entry of a manifest's shape: a number, a size's name, or an expression over sizes such as `M // 2`."""
    return (
        entry
        if isinstance(entry, int)
        else int(eval(entry, {"__builtins__": {}}, dict(sizes) | {"ceildiv": lambda a, b: -(-a // b)}))
    )


def texts(folder: Path) -> list[Text]:
    """Every emitted kernel under `folder`, in a fixed order."""
    paths = sorted(path for path in folder.rglob("*.json") if path.with_suffix(".cu").is_file())
    return [Text(path=path, manifest=json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def build(text: Text, *, arch: str, out: Path, nvcc: str = "nvcc", seconds: float | None = None) -> Prebuilt:
    """Compiles a text for sm_`arch` (such as `90a`) into `out` and loads it.

    A failed compile raises CalledProcessError, with nvcc's text in `stderr`; one of more than `seconds` TimeoutExpired.
    """
    library = out / f"{text.label}.{arch}.so"
    out.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++17", "-O3", "-shared", "-Xcompiler=-fPIC", f"-gencode=arch=compute_{arch},code=sm_{arch}"]
    source = text.path.with_suffix(".cu")
    command = [nvcc, *flags, *_flags_of_needs(text), f"-I{HEADERS}", str(source), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=seconds)
    loaded = ctypes.CDLL(str(library))
    entry, workspace_size = (getattr(loaded, text.manifest["entry"] + end) for end in ("", "_workspace_size"))
    entry.restype, workspace_size.restype = ctypes.c_int, ctypes.c_size_t
    return Prebuilt(path=text.path, manifest=text.manifest, entry=entry, workspace_size=workspace_size)


def _flags_of_needs(text: Text) -> list[str]:
    """What a source needs besides headers/: for the style cute CUTLASS, by $TILE2CU_CUTLASS or $CUTLASS_PATH."""
    if "cutlass" not in text.manifest.get("needs", ()):
        return []
    roots = [Path(root) for name in ("TILE2CU_CUTLASS", "CUTLASS_PATH") if (root := os.environ.get(name))]
    found = [each for root in roots for each in (root / "include", root) if (each / "cute").is_dir()]
    return ["--expt-relaxed-constexpr", "-DNDEBUG", *(f"-I{each}" for each in found[:1])]


def device_arch() -> str:
    """The architecture of torch's current GPU as nvcc spells it, with Hopper's and later ones' own instructions."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"{major}{minor}" + ("a" if major >= 9 else "")
