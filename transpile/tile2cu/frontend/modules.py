"""Modules that a file may import: what the front end knows of each. All else of them is opaque."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.core.dtype import BY_NAME, FLOAT8_E4M3, FLOAT8_E5M2, INT32
from tile2cu.frontend import (
    builtins,
    drivers,
    environment,
    ir_passes,
    language,
    layouts,
    quantize,
    target_queries,
    torch,
)
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault, did_you_mean
from tile2cu.frontend.lower.operand import as_dtype
from tile2cu.frontend.operators import static, static_int
from tile2cu.frontend.values import Arguments, Builtin, Function, Instance, Jit, Namespace, Opaque

NO_BARRIERS = "tl.disable_thread_storage_sync"  # TileLang's name for: the user writes all barriers
DROP_IN = "tile2cu.tilelang"
LANGUAGE_MODULES = ("tilelang.language", "tile2cu.language")


def module(name: str) -> Namespace | None:
    """The module of that name, if the front end knows it. tile2cu.tilelang replaces TileLang's modules."""
    if name == DROP_IN or name.startswith(f"{DROP_IN}."):
        name = name.removeprefix("tile2cu.")
    if name in LANGUAGE_MODULES:
        return Namespace("tilelang.language")
    return Namespace(name) if name in MODULES else None


def member(namespace: Namespace, name: str, text: str) -> object:
    """A member of a module that the front end knows."""
    if namespace.name == "tilelang.language":
        return language.lookup(name)
    if namespace.name == "tilelang.PassConfigKey":
        return name.lower().replace("_", ".", 1)  # as TileLang spells it: "tl.disable_thread_storage_sync"
    known = MODULES[namespace.name]
    if name in known:
        return known[name]
    found = module(f"{namespace.name}.{name}")
    if found is not None:
        return found
    if namespace.name == "tvm.tirx":
        return language.lookup(name)
    if namespace.name == "math":
        raise Fault("T2C-F013", f"`math.{name}` is not supported", help=did_you_mean(name, known, "math."))
    return Opaque(text)


def all_members(namespace: Namespace) -> Mapping[str, object]:
    """What `from module import *` binds."""
    return {} if namespace.name == "tilelang.language" else MODULES[namespace.name]


def _jit(cx: Context, func: object = None, **options: object) -> object:
    """`@tilelang.jit` and `@tilelang.jit(...)`."""
    configs = options.get("pass_configs")
    decorator = Jit(options.get("out_idx"), isinstance(configs, dict) and configs.get(NO_BARRIERS) is True)
    return decorator if func is None else func


def _compile(cx: Context, func: object = None, out_idx: object = None, **options: object) -> object:
    """`tilelang.compile(func, out_idx)`, the call that does what the decorator does."""
    if isinstance(func, Instance) and isinstance(func.values.get("__compile__"), Builtin):
        builtins.invoke_with(cx, func.values["__compile__"], (out_idx,))  # type: ignore[arg-type]
    return func


def _cdiv(cx: Context, a: object, b: object) -> object:
    return language.ceildiv(cx, a, b)


def _next_power_of_2(cx: Context, value: object) -> object:
    if isinstance(value, Opaque):
        return value
    number = static_int(value, "next_power_of_2()")
    cx.budget.integer(int(number).bit_length() + 1)
    return 1 << max(int(number) - 1, 0).bit_length()


def _e_factor(cx: Context, a_dtype: object, meta_dtype: object) -> object:
    """Elements along K that one element of T.gemm_sp's metadata is about: 4 bits are about four, of float32 two."""
    operand = as_dtype(a_dtype, "the first type of get_e_factor")
    return as_dtype(meta_dtype, "the second type of get_e_factor").bits // 4 * (2 if operand.bits == 32 else 4)


def _ignored_decorator(cx: Context, *args: object, **options: object) -> object:
    """`@tilelang.autotune(...)`: chooses parameters at run time; -D chooses them here."""
    return Builtin("tilelang.autotune", lambda cx, func: func)


def _simplified(cx: Context, function: object) -> object:
    """`apply_simplify(function)`: the same function."""
    return function


def _from_kernel(cx: Context, kernel: object = None, configs: object = None, **options: object) -> object:
    """`AutoTuner.from_kernel(kernel, configs)`: the first configuration is the one that is taken."""
    first = configs[0] if isinstance(configs, list) and configs else None
    if isinstance(first, dict):
        cx.tuned.update({str(name): value for name, value in first.items()})
    return Opaque("AutoTuner.from_kernel(...)", cx.here)


def _num_sms(cx: Context, *device: object) -> object:
    return cx.target.multiprocessors


def _fp8_type(cx: Context, fp8_format: object = "e4m3") -> object:
    return FLOAT8_E5M2 if fp8_format == "e5m2" else FLOAT8_E4M3


def _constant(cx: Context, value: object, dtype: object = INT32) -> object:
    """`tirx.const(value, dtype)`."""
    return language.cast(cx, value, dtype)


def _math_function(name: str, run: Callable[..., float | int]) -> Builtin:
    def call(cx: Context, *values: object) -> object:
        opaque = next((value for value in values if isinstance(value, Opaque)), None)
        if opaque is not None:
            return opaque
        numbers = [static(value, f"math.{name}()") for value in values]
        try:
            return run(*(int(number) if isinstance(number, int) else float(number) for number in numbers))
        except TypeError as error:
            raise Fault("T2C-F017", f"math.{name}: {error}") from None

    return Builtin(f"math.{name}", call)


def _product(cx: Context, *sequences: object, repeat: object = 1) -> object:
    """`itertools.product(a, b)`."""
    columns = [builtins.items(cx, values) for values in sequences] * int(static_int(repeat, "`repeat`"))
    cx.budget.sequence(math.prod(len(column) for column in columns))
    rows: list[tuple[object, ...]] = [()]
    for column in columns:
        rows = [(*row, item) for row in rows for item in column]
    return rows


def _chain(cx: Context, *sequences: object) -> object:
    return [item for values in sequences for item in builtins.items(cx, values)]


def _partial(cx: Context, function: object, *given: object, **named: object) -> object:
    """`functools.partial(f, ...)`."""

    def call(cx: Context, *more: object, **others: object) -> object:
        arguments = Arguments((*given, *more), named | others)
        if isinstance(function, Function):
            return cx.call_function(cx, function, arguments)
        if isinstance(function, Builtin):
            return builtins.invoke(cx, function, arguments)
        return Opaque("functools.partial(...)")

    return Builtin("functools.partial(...)", call)


def _functions(module: str, table: Mapping[str, Callable[..., object]]) -> dict[str, object]:
    return {name: Builtin(f"{module}.{name}", run) for name, run in table.items()}


_MATH_FUNCTIONS: Mapping[str, Callable[..., float | int]] = MappingProxyType(
    {
        "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "sqrt": math.sqrt, "exp": math.exp,
        "log": math.log, "log2": math.log2, "log10": math.log10, "pow": math.pow, "gcd": math.gcd, "lcm": math.lcm,
        "isqrt": math.isqrt, "fabs": math.fabs, "isinf": math.isinf, "isnan": math.isnan, "sin": math.sin,
        "cos": math.cos, "tanh": math.tanh,
    }
)  # fmt: skip
_INTEGERS = _functions("tilelang", {"cdiv": _cdiv, "ceildiv": _cdiv, "next_power_of_2": _next_power_of_2})
_FP8 = _functions("tilelang.utils", {"determine_fp8_type": _fp8_type, "determine_torch_fp8_type": _fp8_type})
_TVM: Mapping[str, object] = {
    "DataType": Builtin("tvm.DataType", language.dtype),
    "tirx": Namespace("tvm.tirx"),
    "tir": Namespace("tvm.tirx"),
    "target": Namespace("tvm.target"),
}
_TUNER = Instance("AutoTuner", {"from_kernel": Builtin("AutoTuner.from_kernel", _from_kernel)})
_AUTOTUNE = Builtin("tilelang.autotune", _ignored_decorator)

MODULES: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "tilelang": _INTEGERS
        | {
            "jit": Builtin("tilelang.jit", _jit),
            "lazy_jit": Builtin("tilelang.jit", _jit),
            "autotune": _AUTOTUNE,
            "DataType": Builtin("tilelang.DataType", language.dtype),
            "compile": Builtin("tilelang.compile", _compile),
            "language": Namespace("tilelang.language"),
            "PassConfigKey": Namespace("tilelang.PassConfigKey"),
        },
        "tile2cu": {"jit": Builtin("tilelang.jit", _jit), "language": Namespace("tilelang.language")},
        "tilelang.math": _INTEGERS,
        "tilelang.utils": _FP8,
        "tilelang.autotuner": {"autotune": _AUTOTUNE, "AutoTuner": _TUNER, "jit": Builtin("tilelang.jit", _jit)},
        "tilelang.transform": {},
        "tilelang.transform.simplify": _functions(
            "simplify", {"apply_simplify": _simplified, "simplify_prim_func": _simplified}
        ),
        "tilelang.layout": layouts.FUNCTIONS,
        "tilelang.quantize": quantize.FUNCTIONS,
        "tilelang.quantize.quantization": quantize.FUNCTIONS,
        "tilelang.cuda": {},
        "tilelang.cuda.intrinsics": {},
        "tilelang.cuda.intrinsics.sparse_layout": _functions("sparse_layout", {"get_e_factor": _e_factor})
        | {name: Opaque(name) for name in ("GROUP_CONFIG", "get_e_replicate_factor")},
        "tilelang.cuda.layout": layouts.FUNCTIONS,
        "tilelang.carver": {},
        "tilelang.carver.arch": {},
        "tilelang.carver.arch.driver": _functions("driver", {"get_num_sms": _num_sms}),
        "math": {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "tau": math.tau}
        | {name: _math_function(name, run) for name, run in _MATH_FUNCTIONS.items()},
        "itertools": _functions("itertools", {"product": _product, "chain": _chain}),
        "functools": _functions("functools", {"partial": _partial}),
        "argparse": drivers.ARGPARSE,
        "os": environment.OS,
        "tvm": _TVM,
        "tilelang.tvm": _TVM,
        "tvm.tirx": {**_functions("tirx", {"const": _constant}), **ir_passes.KINDS},
        "tvm.tirx.stmt_functor": ir_passes.FUNCTORS,
        "tilelang.language.fp8": _FP8,
        "tilelang.tileop": {},
        "tilelang.tileop.base": {"GemmWarpPolicy": language.lookup("GemmWarpPolicy")},
        "torch": {**torch.FUNCTIONS, **BY_NAME},
        "torch.cuda": torch.CUDA,
        **target_queries.MODULES,
        "torch.version": {"hip": None, "cuda": "12.0"},
    }
)
