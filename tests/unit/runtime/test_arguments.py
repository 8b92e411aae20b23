"""The arguments of a call: every refusal comes before the launch and names the culprit; outputs are allocated."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile2cu_runtime import ArgumentError, Kernel, LaunchError, parse_manifest
from tile2cu_runtime.arguments import bind_call

F32 = np.float32
Load = Callable[..., Kernel]


def ones(*shape: int, dtype: Any = F32) -> Any:
    return np.ones(shape, dtype)


def misaligned(*shape: int) -> Any:
    count = int(np.prod(shape))
    return np.ones(4 * count + 64, np.uint8)[4 : 4 + 4 * count].view(F32).reshape(shape)


def read_only(*shape: int) -> Any:
    array = ones(*shape)
    array.flags.writeable = False
    return array


X, Y, Z = ones(3, 4), ones(3, 4), ones(3, 4)
BIG = ones(24)


@pytest.mark.parametrize(
    ("args", "kwargs", "code", "argument", "says"),
    [
        ((), {}, "T2C-R100", "X", "`X`, `Y`, `alpha` not given"),
        ((X, Y), {}, "T2C-R100", "alpha", "takes 3 inputs, or 4 arguments with the outputs; `alpha` not given"),
        ((X, Y, Z, 1.0, 2), {}, "T2C-R100", "", "5 were given"),
        ((X, Y, 1.0), {"X": X}, "T2C-R100", "X", "`X` is given twice"),
        ((X, Y, 1.0), {"beta": 1}, "T2C-R100", "beta", "has no argument `beta`"),
        (([1.0], Y, 1.0), {}, "T2C-R101", "X", "float32 tensor of shape (M, N), not list"),
        ((None, Y, 1.0), {}, "T2C-R101", "X", "not NoneType"),
        ((X.astype(np.float64), Y, 1.0), {}, "T2C-R102", "X", "must be float32, not float64"),
        ((X, Y.astype(">f4"), 1.0), {}, "T2C-R102", "Y", "byte-swapped"),
        ((X, Y.astype(ml_dtypes.bfloat16), 1.0), {}, "T2C-R102", "Y", "not bfloat16"),
        ((X, ones(12), 1.0), {}, "T2C-R103", "Y", "the shape (M, N), 2 dimensions, not (12,)"),
        ((X, ones(3, 5), 1.0), {}, "T2C-R104", "Y", "dimension 1 must be 4, not 5"),
        ((X, Y, ones(2, 4), 1.0), {}, "T2C-R104", "Z", "dimension 0 must be 3, not 2"),
        ((X, Y, 1.0), {"M": 4}, "T2C-R104", "X", "dimension 0 must be 4, not 3"),
        ((ones(4, 3).T, Y, 1.0), {}, "T2C-R107", "X", "its strides (1, 3) elements"),
        ((ones(3, 8)[:, ::2], Y, 1.0), {}, "T2C-R107", "X", "contiguous"),
        ((X, ones(1, 4).repeat(1, 0)[[0]].repeat(3, 0)[::-1], 1.0), {}, "T2C-R107", "Y", "strides (-4, 1)"),
        ((misaligned(3, 4), Y, 1.0), {}, "T2C-R109", "X", "aligned to 16 bytes"),
        ((X, Y, read_only(3, 4), 1.0), {}, "T2C-R110", "Z", "read-only"),
        ((X, Y, X, 1.0), {}, "T2C-R111", "Z", "`X` and `Z` overlap"),
        ((BIG[:12].reshape(3, 4), Y, BIG[8:20].reshape(3, 4), 1.0), {}, "T2C-R111", "Z", "overlap"),
        ((X, Y, "1.0"), {}, "T2C-R112", "alpha", "must be float32, not str"),
        ((X, Y, 1e39), {}, "T2C-R112", "alpha", "too large for float32"),
        ((X, Y, 1.0), {"M": 3.0}, "T2C-R112", "M", "must be int32, not float"),
        ((ones(0, 4), ones(0, 4), 1.0), {"M": -1}, "T2C-R106", "M", "not in 0..2147483647"),
    ],
)
def test_refusals(
    load_axpy: Load, args: tuple[Any, ...], kwargs: dict[str, Any], code: str, argument: str, says: str
) -> None:
    kernel = load_axpy()
    with pytest.raises(ArgumentError) as raised:
        kernel(*args, **kwargs)
    assert says in str(raised.value)
    assert (raised.value.code, raised.value.argument) == (code, argument)
    assert np.all(Z == 1), "something was launched"


def test_a_size_that_disagrees_names_both_tensors(load_axpy: Load) -> None:
    with pytest.raises(ArgumentError) as raised:
        load_axpy()(X, ones(3, 5), 1.0)
    assert str(raised.value) == (
        "error[T2C-R104]: `Y` must have the shape (M, N): dimension 1 must be 4, not 5\n"
        "  = note: N = 4 from dimension 1 of `X`, whose shape is (3, 4)"
    )


def test_cpu_kernels_take_no_gpu_tensors(load_axpy: Load) -> None:
    class OnGpu:
        __cuda_array_interface__ = {"data": (4096, False), "shape": (3, 4), "typestr": "<f4", "version": 3}

    with pytest.raises(ArgumentError) as raised:
        load_axpy()(X, OnGpu(), 1.0)
    assert raised.value.code == "T2C-R108"
    assert "`Y` is on cuda:0, and this kernel is loaded for cpu" in str(raised.value)


def test_outputs_are_allocated_and_returned(load_axpy: Load) -> None:
    result = load_axpy()(2 * X, Y, 3)
    assert isinstance(result, np.ndarray) and result.dtype == F32
    np.testing.assert_array_equal(result, np.full((3, 4), 7, F32))


def test_given_outputs_are_written_in_place(load_axpy: Load) -> None:
    kernel, out = load_axpy(), np.zeros((3, 4), F32)
    assert kernel(X, Y, out, 3.0) is None
    np.testing.assert_array_equal(out, np.full((3, 4), 4, F32))
    assert kernel(alpha=5.0, Y=Y, X=X, Z=out) is None
    np.testing.assert_array_equal(out, np.full((3, 4), 6, F32))
    assert kernel(X, Y, np.float32(0.5), Z=out) is None
    np.testing.assert_array_equal(out, np.full((3, 4), 1.5, F32))


def test_empty_tensors(load_axpy: Load) -> None:
    kernel = load_axpy()
    assert kernel(ones(0, 4), ones(0, 4), 1.0).shape == (0, 4)
    assert kernel(misaligned(4, 5)[4:], ones(0, 5), 1.0).shape == (0, 5), "an empty tensor has no alignment"


def test_extents_of_one_have_no_stride(load_axpy: Load) -> None:
    row = ones(4, 3)[:, :1].T
    assert load_axpy()(np.lib.stride_tricks.as_strided(X, (1, 4), (400, 4)), ones(1, 4), 1.0).shape == (1, 4)
    assert row.shape == (1, 4)


def test_objects_with_an_interface(load_axpy: Load) -> None:
    class Interface:
        __array_interface__ = X.__array_interface__

    class Capsule:
        def __dlpack__(self, **options: Any) -> Any:
            return Y.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return Y.__dlpack_device__()

    np.testing.assert_array_equal(load_axpy()(Interface(), Capsule(), 1.0), np.full((3, 4), 2, F32))


def test_a_status_becomes_an_error_with_its_name(load_axpy: Load) -> None:
    with pytest.raises(LaunchError) as raised:
        load_axpy()(X, Y, 99.0)
    assert (raised.value.status, raised.value.name, raised.value.code) == (3, "TL_NOT_SUPPORTED", "T2C-R200")
    assert str(raised.value) == (
        "error[T2C-R200]: axpy: TL_NOT_SUPPORTED: a size or stride is not divisible as the kernel requires, "
        "or a cooperative grid does not fit"
    )


def test_status_names_are_those_of_the_header(headers: Any) -> None:
    import re

    from tile2cu_runtime.errors import status_name

    text = (headers / "tl" / "status.h").read_text(encoding="utf-8")
    found = {int(value): name for name, value in re.findall(r"^\s+(TL_\w+) = (\d+)", text, re.M)}
    assert len(found) >= 5
    for value, name in found.items():
        assert status_name(value).split(" ")[0] == name


@pytest.mark.needs("torch")
def test_torch_tensors(load_axpy: Load) -> None:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    x, y = torch.ones(3, 4), torch.full((3, 4), 2.0)
    result = load_axpy()(x, y, 3.0)
    assert isinstance(result, torch.Tensor) and torch.equal(result, torch.full((3, 4), 5.0))
    leaf = torch.zeros(3, 4, requires_grad=True)
    with pytest.warns(UserWarning, match="`X` requires a gradient, and the kernel's outputs have none") as warned:
        assert torch.equal(load_axpy()(leaf, y, 1.0), y), "a tensor that is only read may require a gradient"
    assert warned[0].filename == __file__
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        load_axpy()(leaf, y, 1.0)
    for bad, code in (
        (x.t().contiguous().t(), "T2C-R107"),
        (x.to_sparse(), "T2C-R101"),
        (x.half(), "T2C-R102"),
        (torch.view_as_complex(torch.ones(3, 4, 2)).conj().imag, "T2C-R102"),
        (torch.ones(3, 4, device="meta"), "T2C-R101"),
        (FakeTensorMode().from_tensor(x), "T2C-R101"),
    ):
        with pytest.raises(ArgumentError) as raised:
            load_axpy()(bad, y, 1.0)
        assert raised.value.code == code
    with pytest.raises(ArgumentError, match="read-only"):
        load_axpy()(x, y, leaf, 1.0)
    with pytest.raises(ArgumentError, match="a tensor of torch.func .* has no memory of its own"):
        torch.vmap(lambda row: load_axpy()(row, y, 1.0))(torch.ones(2, 3, 4))


@pytest.mark.needs("torch")
def test_a_module_that_has_a_kernel_can_be_copied(load_axpy: Load) -> None:
    import torch

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernel = load_axpy()

    layer = Layer()
    assert copy.deepcopy(layer).kernel is layer.kernel


def manifest_of(axpy_data: dict[str, Any], *arguments: dict[str, Any], outputs: tuple[int, ...] = ()) -> Any:
    return parse_manifest(axpy_data | {"arguments": list(arguments), "outputs": list(outputs)})


def tensor(name: str, shape: list[Any], access: str = "read", dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"kind": "tensor", "name": name, "dtype": dtype, "shape": shape, "access": access} | more


def number(kind: str, name: str, dtype: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "dtype": dtype}


def test_sizes_inside_expressions_must_be_given(axpy_data: dict[str, Any]) -> None:
    manifest = manifest_of(axpy_data, tensor("A", ["M // 2"]), number("size", "M", "int32"))
    with pytest.raises(ArgumentError) as raised:
        bind_call(manifest, "cpu", (ones(4),), {})
    assert (raised.value.code, raised.value.argument) == ("T2C-R105", "M")
    assert bind_call(manifest, "cpu", (ones(4),), {"M": 9}).numbers == {"M": 9}
    with pytest.raises(ArgumentError, match="M = 10 as given"):
        bind_call(manifest, "cpu", (ones(4),), {"M": 10})


def test_an_extent_without_a_value(axpy_data: dict[str, Any]) -> None:
    manifest = manifest_of(
        axpy_data, tensor("A", ["M", "K"]), tensor("B", ["M // K"], "write"),
        number("size", "M", "int32"), number("size", "K", "int32"), outputs=(1,),
    )  # fmt: skip
    with pytest.raises(ArgumentError) as raised:
        bind_call(manifest, "cpu", (ones(4, 0),), {})
    assert raised.value.code == "T2C-R106"


def test_several_outputs_come_as_a_tuple(axpy_data: dict[str, Any]) -> None:
    manifest = manifest_of(
        axpy_data,
        tensor("A", ["M"]),
        tensor("B", ["2 * M", 3], "write", "bfloat16"),
        tensor("C", ["M"], "write", "bool"),
        number("size", "M", "int32"),
        outputs=(1, 2),
    )
    call = bind_call(manifest, "cpu", (ones(5),), {})
    b, c = call.result
    assert (b.shape, b.dtype, c.shape, c.dtype) == ((10, 3), ml_dtypes.bfloat16, (5,), np.bool_)
    given = bind_call(manifest, "cpu", (ones(5),), {"B": b})
    assert given.allocated == ("C",) and given.result.shape == (5,)


def test_outputs_without_inputs(axpy_data: dict[str, Any]) -> None:
    manifest = manifest_of(axpy_data, tensor("A", [4, "M"], "write"), number("size", "M", "int32"), outputs=(0,))
    assert bind_call(manifest, "cpu", (), {"M": 2}).result.shape == (4, 2)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers_keep_their_range(axpy_data: dict[str, Any], dtype: str) -> None:
    manifest, info = manifest_of(axpy_data, number("scalar", "n", dtype)), np.iinfo(dtype)
    for good in (info.min, info.max, np.int8(7), True):
        assert bind_call(manifest, "cpu", (good,), {}).numbers == {"n": int(good)}
    for bad in (int(info.min) - 1, int(info.max) + 1, 1.0, "1", None):
        with pytest.raises(ArgumentError) as raised:
            bind_call(manifest, "cpu", (bad,), {})
        assert raised.value.code == "T2C-R112"


def test_booleans(axpy_data: dict[str, Any]) -> None:
    manifest = manifest_of(axpy_data, number("scalar", "flag", "bool"))
    for good in (True, np.True_, 1):
        assert bind_call(manifest, "cpu", (good,), {}).numbers == {"flag": 1}
    with pytest.raises(ArgumentError, match="must be bool, not str"):
        bind_call(manifest, "cpu", ("yes",), {})


def test_sizes_fit_their_type(axpy_data: dict[str, Any]) -> None:
    manifest = manifest_of(axpy_data, tensor("A", ["M"]), number("size", "M", "int32"))
    huge = np.lib.stride_tricks.as_strided(ones(1), (2**31,), (0,))
    with pytest.raises(ArgumentError) as raised:
        bind_call(manifest, "cpu", (huge,), {})
    assert raised.value.code == "T2C-R106"


def test_alignment_is_the_manifests(axpy_data: dict[str, Any]) -> None:
    manifest = manifest_of(axpy_data, tensor("A", ["M"], alignment=4), number("size", "M", "int32"))
    assert bind_call(manifest, "cpu", (misaligned(3),), {}).numbers == {"M": 3}
