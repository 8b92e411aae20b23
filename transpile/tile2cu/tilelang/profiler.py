"""`kernel.get_profiler()` and `tilelang.profiler.do_bench`: checks against a reference, times by tile2cu's timer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tile2cu.tilelang.notes import once
from tile2cu.tilelang.supply import TensorSupplyType, made_up
from tile2cu.tilelang.symbols import others
from tile2cu.tilelang.utils.tensor import torch_assert_close
from tile2cu_runtime.kernel import Kernel
from tile2cu_runtime.timing import Timer, TorchGpu

__all__ = ["Profiler", "TensorSupplyType", "do_bench"]

_TIMES = Callable[[Sequence[float]], float]
_MODES: Mapping[str, _TIMES] = {"mean": statistics.median, "median": statistics.median, "min": min, "max": max}


class Profiled(Protocol):
    """What a profiler calls: a compiled kernel, by its tensors."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def params(self) -> tuple[Any, ...]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


class Profiler:
    """Calls a kernel on made-up tensors: `do_bench`, `assert_allclose`, `run_once`."""

    def __init__(self, kernel: Profiled, supply: TensorSupplyType = TensorSupplyType.Auto) -> None:
        self.kernel = kernel
        self.func = kernel
        self.supply = supply
        self._supplied: Callable[[Any], Any] | None = None

    def with_default_adapter(self, adapter: Any) -> Profiler:
        """The profiler itself: there is one way to call a kernel."""
        return self

    def with_supply_prog(self, supply: Callable[[Any], Any] | None) -> Profiler:
        """Takes the tensors from a function of the kernel's arguments."""
        self._supplied = supply
        return self

    def _get_inputs(self, with_output: bool = False, sizes: Mapping[str, int] | None = None) -> list[Any]:
        if self._supplied is not None:
            return list(self._supplied(self.kernel.params))
        return made_up(self.kernel.kernel, self.supply, sizes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the kernel."""
        return self.kernel(*args, **kwargs)

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """Calls the kernel, or `func`, once on made-up tensors."""
        return (func or self.kernel)(*self._get_inputs())

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Compares the kernel's results with the reference's on the same tensors. Raises AssertionError."""
        inputs = list(input_tensors or self._get_inputs())
        expected = _listed(reference_program(*(each.clone() if hasattr(each, "clone") else each for each in inputs)))
        found = _listed(self.kernel(*inputs))
        if not found:  # a kernel that writes to its arguments, with the tensors it is said to write
            written = [each.name for each in self.kernel.kernel.manifest.tensors if each.written]
            names = [each.name for each in self.kernel.kernel.manifest.called]
            found = [inputs[names.index(name)] for name in written]
        if len(found) < len(expected):
            raise AssertionError(f"the kernel gives {len(found)} tensors, the reference {len(expected)}")
        for actual, wanted in zip(found, expected, strict=False):
            if wanted is not None:
                torch_assert_close(
                    actual, wanted, rtol=rtol, atol=atol, max_mismatched_ratio=max_mismatched_ratio, base_name="kernel"
                )

    def manual_assert_close(
        self, reference_program: Callable[..., Any], input_tensors: Any = None, manual_check_prog: Any = None
    ) -> None:
        """Has a function of both results compare them."""
        inputs = list(input_tensors or self._get_inputs())
        expected = reference_program(*inputs) if reference_program is not None else None
        manual_check_prog(self.kernel(*inputs), expected)

    def assert_consistent(self, repeat: int = 10) -> None:
        """Calls the kernel again and again on the same tensors: every result must have the same bits."""
        import torch

        inputs = self._get_inputs()
        first = _listed(self.kernel(*inputs))
        for _ in range(repeat):
            for one, other in zip(first, _listed(self.kernel(*inputs)), strict=True):
                if not torch.equal(one.view(torch.uint8), other.view(torch.uint8)):
                    raise AssertionError("two calls on the same tensors differ")

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: int = 25,
        rep: int = 100,
        *,
        input_tensors: Sequence[Any] | None = None,
        dynamic_symbolic_constraints: Mapping[str, int] | None = None,
        **others: Any,
    ) -> Any:
        """Milliseconds of a call of the kernel, or of `func`, on the same made-up tensors."""
        inputs = list(input_tensors or self._get_inputs(sizes=dynamic_symbolic_constraints))
        called = func or self.kernel
        names = ("backend", "quantiles", "return_mode", "n_warmup", "n_repeat")
        passed = {name: others[name] for name in names if name in others}
        return do_bench(lambda: called(*inputs), warmup, rep, **passed)


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    *,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **others: Any,
) -> Any:
    """Milliseconds of a call, L2 flushed before each, the launch hidden: the median of the calls that `rep` ms allow.

    "min" and "max" of `return_mode` are of medians of eight calls. Without a GPU it is the time of one call on the CPU,
    which says nothing about a GPU.
    """
    import torch

    if not torch.cuda.is_available():
        once("do_bench measures the CPU engine here: the time says nothing about a GPU")
        start = time.perf_counter()
        fn()
        once_ms = (time.perf_counter() - start) * 1e3
        return [once_ms for _ in quantiles] if quantiles else once_ms
    timer = Timer(TorchGpu())
    fn()
    if quantiles is None and return_mode in ("mean", "median"):
        return timer.median_ms(fn, float(rep))
    medians = sorted(timer.measure(fn, 8) for _ in range(8))
    if quantiles:
        return [medians[min(int(each * len(medians)), len(medians) - 1)] for each in quantiles]
    return medians if return_mode == "all" else _MODES[return_mode](medians)


def _listed(result: Any) -> list[Any]:
    return [] if result is None else list(result) if isinstance(result, tuple | list) else [result]


__getattr__ = others(__name__)
