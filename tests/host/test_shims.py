"""The shims beside a kernel, built with it for the CPU engine: called through torch, pybind11 and DLPack's structs."""

import ctypes
import importlib.util
import os
import site
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.host.shims import EXAMPLES, build, emitted, torch_include, torch_link
from tile2cu.cli import main

ROOT = Path(__file__).resolve().parents[2]
# g++ takes 10 s and more to read the headers of torch's C++ API.
APIS = ("TL_TORCH_STABLE", pytest.param("TL_TORCH_CPP_API", marks=pytest.mark.nightly))


def inputs() -> tuple[np.ndarray, ...]:
    """X, W, S, an output and what it must be, within float16's rounding."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(-2, 3, (5, 64)).astype(np.float16), rng.integers(0, 256, (9, 32)).astype(np.uint8)
    s = np.ones((9, 2), np.float16)
    nibbles = np.stack([w & 15, w >> 4], axis=-1).reshape(9, 64).astype(np.float64)
    return x, w, s, np.full((5, 9), np.nan, np.float16), x @ (nibbles - 8).T


@pytest.mark.needs("torch")
@pytest.mark.parametrize("api", APIS)
def test_torch(api: str, gxx: str, tmp_path: Path) -> None:
    """On the stable ABI in tile2cu's namespace, and on the C++ API of older versions in the user's."""
    import torch

    namespace = "tile2cu" if api == "TL_TORCH_STABLE" else "engine"
    defines = (api, *((f"TL_TORCH_NAMESPACE={namespace}",) if namespace != "tile2cu" else ()))
    library = build(gxx, tmp_path, "torch", [str(torch_include())], torch_link(), "shim.so", defines)
    torch.ops.load_library(str(library))
    run: Any = getattr(torch.ops, namespace).linear_int4
    *arrays, expected = inputs()
    x, w, s, y = map(torch.from_numpy, arrays)
    run(x, w, s, y)
    np.testing.assert_array_equal(y.numpy(), expected)
    assert str(run.default._schema) == f"{namespace}::linear_int4(Tensor X, Tensor W, Tensor S, Tensor(a!) Y) -> ()"
    for wrong in ((x.float(), w, s, y), (x, w[:, :8], s, y), (x, w, s, y.t()), (x.t().contiguous().t(), w, s, y)):
        with pytest.raises(RuntimeError, match="must|another element type"):
            run(*wrong)


@pytest.mark.nightly  # test_torch compiles for CPUs
@pytest.mark.needs("torch")
@pytest.mark.parametrize("api", APIS)
def test_torch_compiles_for_a_gpu(api: str, gxx: str, tmp_path: Path) -> None:
    """The part that the CPU engine does not run: the current stream, and the guard of the device."""
    emitted(EXAMPLES / "linear_int4.py", "torch", tmp_path)
    cuda = [path / "nvidia/cu13/include" for path in map(Path, site.getsitepackages())]
    toolkit = [str(path) for path in cuda if (path / "cuda_runtime_api.h").is_file()]
    if api == "TL_TORCH_CPP_API" and not toolkit:
        pytest.skip("needs CUDA's headers (pip install 'tile2cu[cuda]')")
    includes = [f"-I{ROOT / 'headers'}", "-isystem", str(torch_include()), *(f"-isystem{path}" for path in toolkit)]
    includes.append("-DC10_CUDA_NO_CMAKE_CONFIGURE_FILE")  # which torch for CPUs does not have
    flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-D{api}"]
    subprocess.run([gxx, *flags, *includes, "linear_int4_torch.cpp"], cwd=tmp_path, check=True)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("version, stable", [((2, 11), False), ((2, 13), True), ((3, 0), True)])
def test_torch_takes_the_api_of_its_version(version: tuple[int, int], stable: bool, gxx: str, tmp_path: Path) -> None:
    """torch 2.11 has the headers of the stable ABI, but no native handle of a stream."""
    emitted(EXAMPLES / "linear_int4.py", "torch", tmp_path)
    own = tmp_path / "include/torch/headeronly/version.h"
    own.parent.mkdir(parents=True)
    numbers = zip(("MAJOR", "MINOR", "PATCH", "ABI_TAG"), (*version, 0, 0), strict=True)
    own.write_text("".join(f"#define TORCH_VERSION_{name} {number}\n" for name, number in numbers))
    includes = [f"-I{tmp_path / 'include'}", f"-I{ROOT / 'headers'}", "-isystem", str(torch_include())]
    command = [gxx, "-std=c++20", "-DTL_ON_CPU", *includes, "-M", "linear_int4_torch.cpp"]
    read = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert ("torch/csrc/stable/accelerator.h" in read, "ATen/ops/empty.h" in read) == (stable, not stable)


class DLTensor(ctypes.Structure):
    """dlpack.h of DLPack 1.0."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


def dlpack_folder(folder: Path) -> list[str]:
    """Where <dlpack/dlpack.h> is: torch carries it under another name."""
    (folder / "dlpack").mkdir()
    os.symlink(torch_include() / "ATen/dlpack.h", folder / "dlpack/dlpack.h")
    return [str(folder)]


@pytest.mark.needs("torch")
def test_dlpack(gxx: str, tmp_path: Path) -> None:
    library = build(gxx, tmp_path, "dlpack", dlpack_folder(tmp_path), [], "shim.so")
    run = ctypes.CDLL(str(library)).linear_int4_dlpack
    *arrays, expected = inputs()

    def tensor(array: np.ndarray, code: int, strides: list[int] | None = None) -> DLTensor:
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        steps = (ctypes.c_int64 * array.ndim)(*strides) if strides else None
        bits = array.dtype.itemsize * 8
        return DLTensor(array.ctypes.data, 1, 0, array.ndim, code, bits, 1, shape, steps, 0)

    def call(*tensors: DLTensor) -> int:
        return int(run(*map(ctypes.byref, tensors), None, ctypes.c_size_t(0), None))

    x, w, s, y = (tensor(array, 1 if array.dtype == np.uint8 else 2) for array in arrays)
    assert call(x, w, s, y) == 0
    np.testing.assert_array_equal(arrays[3], expected)
    assert call(tensor(arrays[0], 4), w, s, y) == 3  # kDLBfloat: TL_NOT_SUPPORTED
    assert call(x, w, tensor(arrays[2][:5], 2), y) == 1  # TL_INVALID_SIZE
    assert call(tensor(arrays[0], 2, [1, 5]), w, s, y) == 3
    assert call(tensor(arrays[0], 2, [64, 1]), w, s, y) == 0


@pytest.mark.nightly
def test_tvm_ffi(gxx: str, tmp_path: Path) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi")
    folder = Path(tvm_ffi.__file__).parent
    link = [f"-L{folder / 'lib'}", "-ltvm_ffi", f"-Wl,-rpath,{folder / 'lib'}"]
    library = build(gxx, tmp_path, "tvm-ffi", [str(folder / "include")], link, "shim.so")
    run = tvm_ffi.load_module(str(library)).linear_int4
    *arrays, expected = inputs()
    x, w, s, y = map(tvm_ffi.from_dlpack, arrays)
    run(x, w, s, y)
    np.testing.assert_array_equal(arrays[3], expected)
    for wrong in (arrays[0].astype(np.float32), arrays[0][:, :32].copy(), arrays[0].T):
        with pytest.raises(ValueError, match="linear_int4: a size (or stride )?is"):
            run(tvm_ffi.from_dlpack(wrong), w, s, y)


@pytest.mark.nightly
@pytest.mark.needs("torch")
def test_pybind11(gxx: str, tmp_path: Path) -> None:
    pybind11 = pytest.importorskip("pybind11")
    python = sysconfig.get_path("include")
    if not (Path(python) / "Python.h").is_file():
        pytest.skip("needs Python.h (apt-get install python3-dev)")
    name = "linear_int4_pybind11" + sysconfig.get_config_var("EXT_SUFFIX")
    library = build(gxx, tmp_path, "pybind11", [*dlpack_folder(tmp_path), pybind11.get_include(), python], [], name)
    spec = importlib.util.spec_from_file_location("linear_int4_pybind11", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    *arrays, expected = inputs()
    module.linear_int4(*arrays)
    np.testing.assert_array_equal(arrays[3], expected)
    assert module.linear_int4_workspace_size(5, 9, 64) == 0 and module.linear_int4_supports(5, 9, 64, -1) == 0
    with pytest.raises(RuntimeError, match="not divisible as the kernel requires"):
        module.linear_int4(arrays[0].astype(np.float32), *arrays[1:])


def jax_operator(gxx: str, folder: Path, includes: list[str]) -> Any:
    """linear_int4 as a custom call of JAX on the CPU."""
    jax = pytest.importorskip("jax")
    library = build(gxx, folder, "jax", [jax.ffi.include_dir(), *includes], [], "shim.so")
    target = jax.ffi.pycapsule(ctypes.CDLL(str(library)).linear_int4_jax)
    jax.ffi.register_ffi_target("linear_int4", target, platform="cpu")

    def call(*arrays: Any, shape: tuple[int, int] = (5, 9)) -> Any:
        return jax.ffi.ffi_call("linear_int4", jax.ShapeDtypeStruct(shape, np.float16))(*arrays)

    return call


@pytest.mark.nightly
def test_jax(gxx: str, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    call = jax_operator(gxx, tmp_path, [])
    x, w, s, _, expected = inputs()
    np.testing.assert_array_equal(np.asarray(jax.jit(call)(x, w, s)), expected)
    for wrong in ((x.astype(np.float32), w, s), (x, w[:, :8].copy(), s)):
        with pytest.raises(Exception, match="linear_int4: W: dimension 1 must be 32|buffer dtype"):
            jax.block_until_ready(call(*wrong))
    with pytest.raises(Exception, match="linear_int4: Y: dimension 0 must be 5, not 6"):
        jax.block_until_ready(call(x, w, s, shape=(6, 9)))


def with_scalars(folder: Path) -> str:
    """The name of the text for jax of a kernel with a scalar, and with a tensor that is read and written."""
    path = folder / "add_to.py"
    path.write_text(ADD_TO, encoding="utf-8")
    shim = emitted(path, "jax", folder)[name := "add_to_jax.cpp"]
    assert "input_output_aliases={1: 0}" in shim and 'platform="CUDA"' in shim and "alpha=..." in shim
    return name


def test_jax_has_scalars_and_what_is_read_and_written(tmp_path: Path) -> None:
    with_scalars(tmp_path)


@pytest.mark.nightly
def test_jax_compiles_for_a_gpu(gxx: str, tmp_path: Path) -> None:
    """With the stream, which XLA gives for a GPU."""
    jax = pytest.importorskip("jax")
    includes = [f"-I{ROOT / 'headers'}", "-isystem", jax.ffi.include_dir()]
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([gxx, *flags, *includes, with_scalars(tmp_path)], cwd=tmp_path, check=True)


ADD_TO = """
import tilelang
import tilelang.language as T

@tilelang.jit
def add_to(A, B, alpha: T.float32):
    M = T.dynamic("M")
    A: T.Tensor[[M], T.float32]
    B: T.Tensor[[M], T.float32]
    with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] += A[bx * 32 + i] * alpha
"""


EXTENTS = """
import tilelang
import tilelang.language as T


@tilelang.jit
def extents(M, N, G):
    @T.prim_func
    def body(X: T.Tensor((M, N), "int8"), W: T.Tensor((G,), "int8"), S: T.Tensor((M // G,), "int8"),
             Q: T.Tensor((T.ceildiv(T.ceildiv(M, N) * 2, M // G),), "int8"), Y: T.Tensor((M * N,), "int8")):
        with T.Kernel(M, threads=64) as bx:
            for i in T.Parallel(64):
                Y[bx * N + i] = X[bx, i] * S[bx // G]
    return body
"""


def test_extents_are_computed_in_64_bits_and_divide_by_no_zero(tmp_path: Path) -> None:
    """The launcher rejects G = 0 and M * N from 2**31 on; the shim compares the tensors' extents first."""
    (tmp_path / "extents.py").write_text(EXTENTS, encoding="utf-8")
    for shim in ("dlpack", "torch", "jax"):
        assert main([str(tmp_path / "extents.py"), "--shim", shim, "-o", str(tmp_path)]) == 0
        text = (tmp_path / f"extents_{shim}.cpp").read_text(encoding="utf-8")
        assert "int64_t(M) * int64_t(N)" in text
        assert "(int64_t(G) == 0 ? 0 : int64_t(M) / int64_t(G))" in text
        rows = "(int64_t(N) == 0 ? 0 : (int64_t(M) + int64_t(N) - 1) / int64_t(N))"
        text, by = " ".join(text.split()), "(int64_t(G) == 0 ? 0 : int64_t(M) / int64_t(G))"
        assert f"({by} == 0 ? 0 : (({rows} * 2) + {by} - 1) / {by})" in text
