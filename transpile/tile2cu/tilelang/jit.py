"""`tilelang.jit` and `tilelang.compile`: the function's text is read when the kernel is first called."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

from tile2cu.api_words import speaks_python
from tile2cu.core.errors import Tile2CuError
from tile2cu.emitter import Resolved
from tile2cu.from_function import Origin, default_nones, origin, undecorated
from tile2cu.frontend import is_eager
from tile2cu.frontend.live import Live
from tile2cu.loading import resolve_call
from tile2cu.tilelang.kernel import JITKernel
from tile2cu.tilelang.notes import once
from tile2cu.tilelang.options import Options, options_of
from tile2cu.tilelang.primfunc import PrimFunc
from tile2cu_runtime.tensors import view_of


def jit(func: Any = None, *, out_idx: Any = None, target: Any = None, pass_configs: Any = None, **others: Any) -> Any:
    """`@tilelang.jit`, with and without arguments, above a factory or an eager function.

    `target_host`, `execution_backend`, `verbose`, `debug_root_path` and `compile_flags` have no effect.
    """
    options = options_of(out_idx=out_idx, target=target, pass_configs=pass_configs, **others)
    frame = sys._getframe(1)
    if isinstance(func, PrimFunc):
        return _compiled(func, options)
    return JITImpl(func, options, frame) if func is not None else lambda function: JITImpl(function, options, frame)


lazy_jit = jit


def compile(
    func: Any, out_idx: Any = None, *, target: Any = None, pass_configs: Any = None, **others: Any
) -> JITKernel:
    """`tilelang.compile`: the kernel of a function with `@T.prim_func`."""
    if isinstance(func, JITImpl):
        return func.compile()
    return _compiled(func, options_of(out_idx=out_idx, target=target, pass_configs=pass_configs, **others))


def par_compile(funcs: Iterable[Any], out_idx: Any = None, *, ignore_error: bool = False, **others: Any) -> list[Any]:
    """`tilelang.par_compile`: the kernels of several functions; None for those that fail, with `ignore_error`."""
    others.pop("num_workers", None)
    return _each(funcs, lambda func: compile(func, out_idx, **others), ignore_error)


def _each(given: Iterable[Any], make: Callable[[Any], JITKernel], ignore_error: bool) -> list[Any]:
    """What is made of each; None of those that fail, with `ignore_error`."""
    found: list[Any] = []
    for each in given:
        try:
            found.append(make(each))
        except Tile2CuError:
            if not ignore_error:
                raise
            found.append(None)
    return found


@speaks_python
def _compiled(func: Any, options: Options) -> JITKernel:
    if not isinstance(func, PrimFunc):
        raise Tile2CuError(
            "T2C-C031",
            f"tilelang.compile takes a function with @T.prim_func, not {type(func).__name__}",
            help="decorate it in the function that makes it, and return it",
        )
    live = Live(names=func.origin.names, out_idx=options.out_idx, own_barriers=options.own_barriers)
    return JITKernel(resolve_call(func.origin, live, func.origin.around, target=options.target), options, func)


class JITImpl:
    """A function with `@tilelang.jit`. A factory's call gives a kernel, an eager function's runs one."""

    def __init__(self, func: Any, options: Options, frame: FrameType | None = None) -> None:
        plain = undecorated(func)
        self.origin: Origin = origin(func, frame)
        assert plain is not None, "origin() has found it"
        self.func = plain
        self.options = options
        self.signature = inspect.signature(plain)
        self._default_none = default_nones(plain)
        self._kernels: dict[str, JITKernel] = {}
        functools.update_wrapper(self, plain)

    @functools.cached_property
    def is_eager(self) -> bool:
        """Whether calls take tensors and run the kernel: the function's own body has `with T.Kernel`."""
        found = self.origin
        return is_eager(found.text, found.kernel, found.path, live=Live(names=found.names))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A factory's kernel for these arguments; or an eager function's result for these tensors."""
        if not self.is_eager:
            return self.compile(*args, **kwargs)
        given = self._arguments(args, kwargs)
        kernel = self._kernel(given)
        manifest = kernel.kernel.manifest
        passed = [each.name for each in manifest.called if each.name in given]
        if len(passed) == len([each for each in manifest.called if each.name not in manifest.output_names]):
            return kernel(*(given[name] for name in passed))
        return kernel(**{name: given[name] for name in passed})

    def _arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of a call by their names, with defaults."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def specialised(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel that a call with these arguments runs, tensors included."""
        return self._kernel(self._arguments(args, kwargs))

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel for these arguments. An eager function may be given sizes from T.const by their names."""
        names = list(self.signature.parameters)
        if self.is_eager:
            sizes = {name: value for name, value in kwargs.items() if name not in names}
            bound = self.signature.bind_partial(*args, **{name: kwargs[name] for name in kwargs if name in names})
            bound.apply_defaults()
            return self._kernel({**bound.arguments, **sizes})
        return self._kernel(self._arguments(args, kwargs))

    def par_compile(self, configs: Iterable[Any], *, ignore_error: bool = False, **others: Any) -> list[Any]:
        """The kernels of several argument sets: dicts, or tuples of positional arguments."""

        def made(each: Any) -> JITKernel:
            return self.compile(**each) if isinstance(each, Mapping) else self.compile(*each)

        return _each(configs, made, ignore_error)

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The emitted source for these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def get_tir(self, *args: Any, **kwargs: Any) -> PrimFunc:
        """The function itself: tile2cu has no TIR. `tile2cu explain` reports what is decided about it."""
        once("`get_tir` gives the function's text: there is no TIR")
        return PrimFunc(self.func)

    def _kernel(self, arguments: Mapping[str, Any]) -> JITKernel:
        views = {name: view for name, value in arguments.items() if (view := view_of(value)) is not None}
        shapes = {name: tuple(view.shape) for name, view in views.items()}
        values = {name: value for name, value in arguments.items() if name not in views}
        values = {name: value for name, value in values.items() if value is not None or name not in self._default_none}
        key = repr((sorted(shapes.items()), sorted(values.items(), key=lambda item: item[0])))
        if key not in self._kernels:
            self._kernels[key] = JITKernel(self._resolved(shapes, values), self.options, None)
        return self._kernels[key]

    @speaks_python
    def _resolved(self, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, Any]) -> tuple[Resolved, ...]:
        options, found = self.options, self.origin
        live = Live(shapes=shapes, names=found.names, out_idx=options.out_idx, own_barriers=options.own_barriers)
        return resolve_call(found, live, {**found.around, **values}, target=options.target)
