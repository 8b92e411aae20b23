"""Runs a corpus's kernels on a GPU, with arguments and expected results of the reference interpreter.

    python tests/conformance/on_gpu.py collect DIR OUT --target cuda:sm_90a    sources and arguments of correct kernels
    python tests/conformance/on_gpu.py run OUT                                 on the GPU's machine: Python, NumPy, nvcc
    python tests/conformance/on_gpu.py compare OUT                             one line per kernel, and a count

`collect` takes the kernels that are correct on the target in status.json, which the CPU engine has run. OUT holds a
folder for each: the source, arguments.npz, and the interpreter's results, expected.npz. Each runs in its own process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "transpile"), str(ROOT / "runtime"), str(ROOT), str(ROOT / "tools")]

import prebuilt  # noqa: E402

RUN_SECONDS = 240  # of one kernel's build and its run on the GPU: nvcc takes a minute for CuTe's templates
_VALUES = "values.json"


def collect(corpus: Path, out: Path, target_name: str, style: str = "tl") -> None:
    """Writes the folders. What an argument's search passes over here, run_kernel passes over, too."""
    from tests.conformance import run_kernel as running
    from tile2cu.targets import find

    tables = json.loads(Path(__file__).with_name("status.json").read_text(encoding="utf-8"))
    statuses = tables.get(target_name, tables["cuda:sm_80"])
    right = [name for name, status in sorted(statuses.items()) if status == "correct"]
    for number, name in enumerate(right):
        file, kernel = name.split("::")
        folder = out / f"{number:03}"

        def keep(
            program: Any, emitted: Any, *, seconds: float, folder: Path = folder, name: str = name
        ) -> running.Outcome:
            kept = _keep(program, emitted, folder / str(len(list(folder.glob("*")))), name, seconds)
            return running.Outcome("correct") if kept else running.Outcome("compiled", running.UNRUN)

        try:
            running.run_kernel(corpus / file, kernel, find(target_name), run=keep, style=style)
        except Exception as error:  # a kernel that cannot be had is one that is not compared
            print(f"{name}: {type(error).__name__}: {error}")


def _keep(program: Any, emitted: Any, folder: Path, name: str, seconds: float) -> bool:
    """Writes one folder; False where the interpreter gives the kernel a meaning with no arguments."""
    from tests.conformance import arguments as making
    from tests.conformance.comparison import tolerance
    from tests.conformance.reference import in_memory, interpret

    for choice in making.choices(program):
        try:
            arguments = making.make(program, choice)
            expected = interpret(program, arguments, seconds=seconds)
        except Exception:  # the next choice is tried, as run_kernel does
            continue
        if all(exact.tobytes() == np.asarray(arguments[tensor]).tobytes() for tensor, exact in expected.items()):
            continue
        types = {param.name: param.dtype for param in program.params}
        tensors = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}
        numbers = {key: value for key, value in arguments.items() if key not in tensors}
        folder.mkdir(parents=True)
        for file, content in emitted.files.items():
            (folder / file).write_text(content, encoding="utf-8")
        placed, exact = (
            {
                key: making.with_strides(program, arguments, key, in_memory(value, types[key]))
                for key, value in of.items()
            }
            for of in (tensors, expected)
        )
        np.savez_compressed(folder / "arguments.npz", **{key: _bytes(value) for key, value in placed.items()})
        np.savez(folder / "expected.npz", **{key: _bytes(value) for key, value in exact.items()})
        about = {
            "name": name,
            "numbers": {key: np.asarray(value).item() for key, value in numbers.items()},
            "tolerance": asdict(tolerance(program, arguments, wgmma=True)),
            "shapes": {key: list(exact[key].shape) for key in expected},
            "strides": {key: list(exact[key].strides) for key in expected},
            "types": {key: types[key].name for key in expected},
        }
        (folder / _VALUES).write_text(json.dumps(about), encoding="utf-8")
        return True
    return False


def _bytes(array: np.ndarray) -> np.ndarray:
    """The memory from an array's first element to its last one, gaps between strided rows included."""
    steps = ((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    size = sum(steps) + array.itemsize if array.size else 0
    return np.frombuffer(ctypes.string_at(array.ctypes.data, size), np.uint8)


def run(out: Path, nvcc: str, arch: str) -> None:
    """Builds and runs each folder's kernel; what its tensors then hold goes to actual.npz, what went wrong to error."""
    folders = sorted(path.parent for path in out.rglob(_VALUES))
    command = [sys.executable, str(Path(__file__).resolve()), "one", "--nvcc", nvcc, "--arch", arch]

    def one(folder: Path) -> None:
        try:
            done = subprocess.run([*command, str(folder)], capture_output=True, text=True, timeout=RUN_SECONDS)
            error = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        except subprocess.TimeoutExpired:
            error = [f"it ran for {RUN_SECONDS} seconds"]
        (folder / "error").write_text("".join(error), encoding="utf-8")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, folders))


class _Gpu:
    """Memory of the GPU by the driver's own functions: no torch, whose import costs seconds for each kernel."""

    def __init__(self) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        if status := getattr(self.driver, name)(*arguments):
            raise RuntimeError(f"{name}: error {status}")

    def put(self, array: np.ndarray) -> ctypes.c_void_p:
        memory = ctypes.c_void_p()
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(max(array.nbytes, 1)))
        self.call("cuMemcpyHtoD_v2", memory, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return memory

    def get(self, memory: ctypes.c_void_p, nbytes: int) -> np.ndarray:
        array = np.empty(nbytes, np.uint8)
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), memory, ctypes.c_size_t(nbytes))
        return array


def one(folder: Path, nvcc: str, arch: str) -> None:
    """Builds and runs the kernel of one folder in this process: a fault of the GPU ends the process's use of it."""
    (text,) = prebuilt.texts(folder)
    numbers = json.loads((folder / _VALUES).read_text(encoding="utf-8"))["numbers"]
    kernel = prebuilt.build(text, arch=arch, out=folder, nvcc=nvcc)
    gpu, arguments = _Gpu(), np.load(folder / "arguments.npz")
    memory = {tensor["name"]: gpu.put(arguments[tensor["name"]]) for tensor in text.tensors}
    passed: list[Any] = [
        memory[argument["name"]]
        if argument["kind"] == "tensor"
        else prebuilt.C_TYPES[argument["dtype"]](numbers[argument["name"]])
        for argument in text.manifest["arguments"]
    ]
    sizes = [ctypes.c_int(int(numbers[name])) for name in text.sizes]
    workspace = np.zeros(kernel.workspace_size(*sizes), np.uint8)
    if status := kernel.entry(*passed, gpu.put(workspace), ctypes.c_size_t(workspace.nbytes), ctypes.c_void_p(0)):
        raise prebuilt.LaunchError(f"tl_status {status}", status)
    outputs = [tensor["name"] for tensor in text.tensors if tensor["access"] != "read"]
    written = {name: gpu.get(memory[name], arguments[name].nbytes) for name in outputs}
    np.savez_compressed(folder / "actual.npz", **written)
    for library in folder.glob("*.so"):
        library.unlink()


def compare(out: Path) -> Iterator[tuple[str, str]]:
    """(kernel, what is wrong or nothing) of each folder."""
    from tests.conformance.comparison import Tolerance
    from tests.conformance.reference import from_memory, numpy_dtype
    from tile2cu.core.dtype import BY_NAME

    for path in sorted(out.rglob(_VALUES)):
        about: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        error = (
            (path.parent / "error").read_text(encoding="utf-8")
            if (path.parent / "error").is_file()
            else "it was not run"
        )
        if error:
            yield about["name"], error
            continue
        limits = Tolerance(**about["tolerance"])
        actual, expected = np.load(path.parent / "actual.npz"), np.load(path.parent / "expected.npz")
        faults = []
        for name in actual.files:
            dtype = BY_NAME[about["types"][name]]
            stored = np.dtype(np.uint8) if dtype.is_packed else numpy_dtype(dtype)
            both = [
                from_memory(
                    np.ndarray(about["shapes"][name], stored, data[name].tobytes(), strides=about["strides"][name]),
                    dtype,
                )
                for data in (actual, expected)
            ]
            faults += [f"{name}: {fault}"] if (fault := limits.faults(*both, dtype)) else []
        yield about["name"], "; ".join(faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("collect", "run", "one", "compare"))
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--target", default="cuda:sm_80")
    parser.add_argument("--style", default="tl", help="of the sources; those it does not support are left out")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", default="90a", help="of the GPU, as nvcc spells it")
    options = parser.parse_args()
    if options.step == "collect":
        collect(*options.folders, options.target, options.style)
    elif options.step == "run":
        run(*options.folders, options.nvcc, options.arch)
    elif options.step == "one":
        one(*options.folders, options.nvcc, options.arch)
    else:
        rows = list(compare(*options.folders))
        for name, fault in rows:
            print(f"{name}: {fault or 'right'}")
        print(Counter("wrong" if fault else "right" for _, fault in rows))
        return int(any(fault for _, fault in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
