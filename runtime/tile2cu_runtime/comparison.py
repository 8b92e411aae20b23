"""A kernel's results compared with those of a reference function on the same arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tile2cu_runtime.errors import ArgumentError
from tile2cu_runtime.spec import Manifest, TensorArgument
from tile2cu_runtime.trial import to_torch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[Any]

# By which results may differ where no tolerance is given, at the largest element of the reference: of types of at most
# 16 bits, which are rounded once or twice, and of others, in which sums are accumulated.
_ULPS_NARROW, _ULPS_WIDE = 4, 64


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A tensor beside its reference. An element differs where |result - reference| > atol + rtol * |reference|.

    `worst` is the index of the largest error, `result` and `expected` are the values there; `ulps` is that error in
    units in the last place of the tensor's type, at the largest element of the reference. NaN equals NaN.
    """

    name: str
    elements: int
    differing: int
    rtol: float
    atol: float
    max_error: float
    ulps: float
    worst: tuple[int, ...]
    result: float
    expected: float

    @property
    def agrees(self) -> bool:
        return self.differing == 0

    def __str__(self) -> str:
        """A line of the table whose heading is HEADING."""
        verdict = "agrees" if self.agrees else f"{self.differing} of {self.elements} differ"
        place = f"at {list(self.worst)}: {self.result:.6g}, expected {self.expected:.6g}" if self.max_error else ""
        return f"{self.name:<12} {verdict:<24} {self.max_error:<12.4g} {self.ulps:<8.3g} {place}".rstrip()


HEADING = f"{'tensor':<12} {'against the reference':<24} {'max error':<12} {'in ulps':<8} where"


def compare(
    manifest: Manifest,
    reference: Callable[..., Any],
    before: Mapping[str, Array],
    after: Mapping[str, Array],
    numbers: Mapping[str, Any],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    with_torch: bool = False,
) -> Iterator[Comparison]:
    """Calls the reference with what the kernel read, and compares what the kernel wrote.

    It gets the tensors that the kernel reads and its scalars, in the kernel's order: torch tensors `with_torch`, else
    NumPy arrays, those of 8 and 16-bit floats converted to float32, in which NumPy computes. It returns the written
    tensors: one, a tuple, or a dict by name. Without a tolerance, results may differ by 4 units in the last place of
    types of at most 16 bits, and by 64 of others, at the reference's largest element.
    Errors: T2C-R120 where it returns something else.
    """
    given = [
        (to_torch(before[each.name].copy()) if with_torch else _as_numpy(before[each.name]))
        if isinstance(each, TensorArgument)
        else numbers[each.name]
        for each in manifest.called
        if not isinstance(each, TensorArgument) or each.access != "write"
    ]
    found = reference(*given)
    for tensor, expected in _by_tensor(manifest, found):
        yield _compared(tensor, after[tensor.name], expected, rtol, atol)


def _by_tensor(manifest: Manifest, found: Any) -> Iterator[tuple[TensorArgument, Array]]:
    written = [tensor for tensor in manifest.tensors if tensor.written]
    if isinstance(found, Mapping):
        by_name = {tensor.name: tensor for tensor in written}
        if unknown := [name for name in found if name not in by_name]:
            raise _unusable(f"names `{unknown[0]}`", written)
        pairs = [(by_name[name], value) for name, value in found.items()]
    else:
        values = list(found) if isinstance(found, tuple | list) else [found]
        if len(values) != len(written):
            raise _unusable(f"returns {len(values)} results", written)
        pairs = list(zip(written, values, strict=True))
    if not pairs:
        raise _unusable("returns nothing", written)
    for tensor, value in pairs:
        yield tensor, _in_float64(tensor, value, written)


def _unusable(what: str, written: list[TensorArgument]) -> ArgumentError:
    names = ", ".join(tensor.name for tensor in written)
    return ArgumentError("T2C-R120", f"the reference {what}, and the kernel writes {names}")


def _in_float64(tensor: TensorArgument, value: Any, written: list[TensorArgument]) -> Array:
    import numpy as np

    if hasattr(value, "detach"):  # of torch
        value = value.detach().cpu().double().numpy()
    if value is None or not hasattr(value, "__array__") and not np.isscalar(value):
        raise _unusable(f"gives {type(value).__name__} for {tensor.name}", written)
    return np.asarray(value).astype(np.float64)


def _compared(
    tensor: TensorArgument, result: Array, expected: Array, rtol: float | None, atol: float | None
) -> Comparison:
    import numpy as np

    if result.shape != expected.shape:
        raise ArgumentError(
            "T2C-R120",
            f"the reference gives {tensor.name} the shape {expected.shape}, and the kernel {result.shape}",
            argument=tensor.name,
        )
    wide = result.astype(np.float64)
    step = _unit(result.dtype, expected)
    if rtol is None and atol is None:
        rtol, atol = 0.0, step * (_ULPS_NARROW if result.dtype.itemsize <= 2 else _ULPS_WIDE)
    rtol, atol = rtol or 0.0, atol or 0.0
    with np.errstate(invalid="ignore"):
        error = np.where((wide == expected) | (np.isnan(wide) & np.isnan(expected)), 0.0, np.abs(wide - expected))
        error = np.where(np.isnan(error), np.inf, error)
        differs = error > atol + rtol * np.where(np.isfinite(expected), np.abs(expected), 0.0)
    worst = np.unravel_index(int(error.argmax()), error.shape) if error.size else ()
    largest = float(error.max(initial=0.0))
    return Comparison(
        name=tensor.name,
        elements=error.size,
        differing=int(differs.sum()),
        rtol=rtol,
        atol=atol,
        max_error=largest,
        ulps=largest / step if step else largest,
        worst=tuple(map(int, worst)),
        result=float(wide[worst]) if error.size else 0.0,
        expected=float(expected[worst]) if error.size else 0.0,
    )


def _unit(dtype: np.dtype[Any], expected: Array) -> float:
    """A unit in the last place of a type at the largest finite element; 0 for integers, which are exact."""
    import ml_dtypes
    import numpy as np

    if dtype.kind in "biu":
        return 0.0
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    finfo: Any = ml_dtypes.finfo
    return float(finfo(dtype).eps) * (largest or 1.0)


def _as_numpy(array: Array) -> Array:
    import numpy as np

    narrow = array.dtype.itemsize < 4 and array.dtype.kind in "fV"
    return array.astype(np.float32) if narrow else array.copy()
