"""`tilelang.autotune` and `AutoTuner`: the configurations that the program lists, each compiled, checked and timed.

Without a GPU nothing can be timed: the first configuration that compiles is taken, and that is said once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any

from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.tilelang.jit import JITImpl, compile, jit
from tile2cu.tilelang.kernel import JITKernel
from tile2cu.tilelang.notes import once
from tile2cu.tilelang.profiler import Profiler, do_bench
from tile2cu.tilelang.supply import TensorSupplyType
from tile2cu.tilelang.symbols import others
from tile2cu_runtime.errors import Error
from tile2cu_runtime.tensors import view_of
from tile2cu_runtime.timing import Timer, TorchGpu, interleaved

__all__ = [
    "AutoTuner",
    "AutotuneResult",
    "TensorSupplyType",
    "autotune",
    "get_autotune_inputs",
    "jit",
    "set_autotune_inputs",
]

MOST = "TILE2CU_TUNE_CONFIGS"  # how many configurations a tuner takes at most, evenly spread over the program's list
ROUNDS = 3  # of interleaved medians of all configurations
_WITHOUT_EFFECT = ("timeout", "cache_input_tensors", "do_not_specialize", "early_stop", "early_stop_factor")
_given = threading.local()

Config = Mapping[str, Any]
Measure = Callable[[Sequence[JITKernel], Sequence[Any]], Sequence[float]]


class Tuning(Record, frozen=True, kw_only=True):
    """How configurations are checked: against `ref_prog`, with tensors from `supply_prog` or of `supply_type`."""

    supply_type: TensorSupplyType = TensorSupplyType.Auto
    ref_prog: Callable[..., Any] | None = None
    supply_prog: Callable[[Any], Any] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None


class AutotuneResult(Record, frozen=True, kw_only=True):
    """The configuration that is taken, its kernel, and what was measured, in milliseconds; None without a GPU."""

    latency: float | None
    config: dict[str, Any]
    ref_latency: float | None
    kernel: JITKernel
    func: Any = None
    libcode: str = ""


@contextmanager
def set_autotune_inputs(*tensors: Any) -> Iterator[None]:
    """Has tuners in this block call kernels with these tensors."""
    flat = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    before, _given.tensors = get_autotune_inputs(), tuple(flat)
    try:
        yield
    finally:
        _given.tensors = before


def get_autotune_inputs() -> tuple[Any, ...] | None:
    """The tensors of set_autotune_inputs, None outside of it."""
    return getattr(_given, "tensors", None)


def autotune(func: Any = None, *, configs: Any, warmup: int = 25, rep: int = 100, **others: Any) -> Any:
    """`@tilelang.autotune(configs=...)`, above `@tilelang.jit`.

    `configs` is a list of dicts, or a function of the call's arguments that gives one.
    """
    tuning = _tuning(others)
    return Tuned(func, configs, tuning) if func is not None else lambda function: Tuned(function, configs, tuning)


def _tuning(others: dict[str, Any]) -> Tuning:
    for name in _WITHOUT_EFFECT:
        if others.pop(name, None):
            once(f"`{name}` of the tuner has no effect: all configurations are timed in {ROUNDS} interleaved rounds")
    others.pop("backend", None)
    return Tuning(**others)


class Tuned:
    """A jit function whose configuration is chosen at the first call with other arguments."""

    def __init__(self, func: Any, configs: Any, tuning: Tuning) -> None:
        if not isinstance(func, JITImpl):
            raise Tile2CuError(
                "T2C-C031", "`@tilelang.autotune` stands above `@tilelang.jit`", help="swap the two decorators"
            )
        self.jit = func
        self.configs = configs
        self.tuning = tuning
        self._found: dict[str, AutotuneResult] = {}
        update_wrapper(self, func)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "jit":
            raise AttributeError(name)
        return getattr(self.jit, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The best kernel for a factory's arguments; or an eager function's result by its best kernel."""
        if self._has_all(args, kwargs):
            return self.jit(*args, **kwargs)
        result = self._tuned(args, kwargs)
        if not self.jit.is_eager:
            return result.kernel
        return self.jit(*args, **{**kwargs, **result.config})

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The best kernel for these arguments, or that of a configuration which they have already."""
        return self.jit.compile(*args, **kwargs) if self._has_all(args, kwargs) else self._tuned(args, kwargs).kernel

    def _has_all(self, args: tuple[Any, ...], kwargs: Config) -> bool:
        """Whether a call gives what the configurations would."""
        given = {*kwargs, *list(self.jit.signature.parameters)[: len(args)]}
        return all(config.keys() - {"pass_configs"} <= given for config in _listed(self.configs, args, kwargs))

    def _tuned(self, args: tuple[Any, ...], kwargs: Config) -> AutotuneResult:
        views = [view_of(each) for each in (*args, *kwargs.values())]
        plain = [each for each in (*args, *sorted(kwargs.items())) if view_of(each) is None]
        key = repr((plain, [(view.shape, view.dtype) for view in views if view is not None]))
        if key not in self._found:
            tensors = [each for each in args if view_of(each) is not None]

            def make(config: Config) -> JITKernel:
                if self.jit.is_eager and tensors:
                    return self.jit.specialised(*args, **{**kwargs, **config})
                return self.jit.compile(*args, **{**kwargs, **config})

            self._found[key] = tuned(make, _listed(self.configs, args, kwargs), self.tuning, tensors)
        return self._found[key]


class AutoTuner:
    """`AutoTuner.from_kernel(factory, configs).set_compile_args(...).set_profile_args(...).run()`."""

    def __init__(self, factory: Any, configs: Sequence[Config]) -> None:
        self.factory = factory
        self.configs = configs
        self._compile: dict[str, Any] = {}
        self._tuning = Tuning()

    @classmethod
    def from_kernel(cls, kernel: Any, configs: Any) -> AutoTuner:
        """A tuner of a factory: a function that makes a prim_func of each configuration's arguments."""
        return cls(kernel, _listed(configs, (), {}))

    def set_compile_args(self, **arguments: Any) -> AutoTuner:
        """The arguments of `tilelang.compile`."""
        self._compile = arguments
        return self

    def set_profile_args(self, **arguments: Any) -> AutoTuner:
        """How configurations are checked; see `autotune`."""
        for name in ("warmup", "rep"):
            arguments.pop(name, None)
        self._tuning = _tuning(arguments)
        return self

    def run(self, warmup: int = 25, rep: int = 100, **others: Any) -> AutotuneResult:
        """Compiles, checks and times all configurations. Errors: the last one's, if none compiles."""

        def make(config: Config) -> JITKernel:
            made = self.factory.compile(**config) if isinstance(self.factory, JITImpl) else self.factory(**config)
            return made if isinstance(made, JITKernel) else compile(made, **self._compile)

        result = tuned(make, self.configs, self._tuning, ())
        return replace(result, func=self.factory)


def tuned(
    make: Callable[[Config], JITKernel], configs: Sequence[Config], tuning: Tuning, tensors: Sequence[Any]
) -> AutotuneResult:
    """The fastest kernel that compiles and agrees with the reference. Errors: the last one's, if there is none."""
    import torch

    plain = [{name: value for name, value in config.items() if name != "pass_configs"} for config in _spread(configs)]
    with_gpu = torch.cuda.is_available()
    if not with_gpu:
        once("the tuner takes the first configuration that compiles: without a GPU nothing is timed")
    made = _compiled(make, plain, all_of_them=with_gpu)
    inputs = list(tensors or get_autotune_inputs() or _inputs(made[0][1], tuning))
    kept = [(config, kernel) for config, kernel in made if _agrees(kernel, inputs, tuning)]
    if not kept:
        raise AssertionError("no configuration agrees with the reference")
    times = measured([kernel for _, kernel in kept], inputs) if with_gpu else [None for _ in kept]
    best = min(range(len(kept)), key=lambda index: times[index] or 0.0)
    config, kernel = kept[best]
    reference = tuning.ref_prog
    ref_ms = float(do_bench(lambda: reference(*inputs))) if reference is not None and with_gpu else None
    kernel.latency, kernel.config, kernel.ref_latency = times[best], dict(config), ref_ms
    return AutotuneResult(
        latency=times[best],
        config=dict(config),
        ref_latency=ref_ms,
        kernel=kernel,
        libcode=kernel.get_kernel_source(),
    )


def _spread(configs: Sequence[Config]) -> Sequence[Config]:
    """The configurations, or as many of them as the environment allows."""
    most = int(os.environ.get(MOST) or len(configs))
    if most >= len(configs) or most < 1:
        return configs
    once(f"the tuner takes {most} of {len(configs)} configurations, as {MOST} says")
    return [configs[index * len(configs) // most] for index in range(most)]


def measured(kernels: Sequence[JITKernel], inputs: Sequence[Any]) -> list[float | None]:
    """The median milliseconds of each kernel, in interleaved rounds."""
    timer = Timer(TorchGpu())
    calls = {str(index): (lambda kernel=kernel: kernel(*inputs)) for index, kernel in enumerate(kernels)}
    times = interleaved(calls, timer, ROUNDS)
    return [sorted(times[str(index)])[ROUNDS // 2] for index in range(len(kernels))]


def _compiled(
    make: Callable[[Config], JITKernel], configs: Sequence[Config], *, all_of_them: bool
) -> list[tuple[Config, JITKernel]]:
    """The configurations that compile, with their kernels: all of them, or the first."""
    found: list[tuple[Config, JITKernel]] = []
    last: Error | None = None
    with ThreadPoolExecutor(max_workers=(os.cpu_count() or 1) if all_of_them else 1) as pool:
        for config, made in zip(configs, pool.map(lambda config: _made(make, config), configs), strict=True):
            if isinstance(made, Error):
                last = made
                once(f"the configuration {dict(config)} does not compile: {str(made).splitlines()[0]}")
                continue
            found.append((config, made))
            if not all_of_them:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    if not found:
        raise last or Tile2CuError("T2C-C031", "there are no configurations to choose from")
    return found


def _made(make: Callable[[Config], JITKernel], config: Config) -> JITKernel | Error:
    try:
        return make(config)
    except Error as error:
        return error


def _inputs(kernel: JITKernel, tuning: Tuning) -> list[Any]:
    return Profiler(kernel, tuning.supply_type).with_supply_prog(tuning.supply_prog)._get_inputs()


def _agrees(kernel: JITKernel, inputs: Sequence[Any], tuning: Tuning) -> bool:
    if tuning.skip_check or tuning.ref_prog is None:
        return True
    profiler = Profiler(kernel, tuning.supply_type)
    try:
        if tuning.manual_check_prog is not None:
            profiler.manual_assert_close(tuning.ref_prog, inputs, tuning.manual_check_prog)
        else:
            profiler.assert_allclose(tuning.ref_prog, inputs, tuning.atol, tuning.rtol, tuning.max_mismatched_ratio)
    except AssertionError as error:
        once(f"a configuration disagrees with the reference: {error}")
        return False
    return True


def _listed(configs: Any, args: tuple[Any, ...], kwargs: Config) -> list[Config]:
    return list(configs(*args, **kwargs) if callable(configs) else configs)


__getattr__ = others(__name__)
