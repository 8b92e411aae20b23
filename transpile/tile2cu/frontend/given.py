"""Values given with -D: numbers and texts denote themselves, calls and tuples are evaluated in the file's scope."""

import dataclasses
from collections.abc import Mapping

import libcst as cst

from tile2cu.core.dtype import DType
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import ENVIRONMENT
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.parse import source_file
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Opaque

# What `-D out_config=Config(block=128)`, `-D shape=(1, 128)` and `-D 'op=lambda x: x * x'` are; a name alone is a text,
# as in `-D dtype=float16`.
_EXPRESSIONS = (cst.Call, cst.Tuple, cst.List, cst.Dict, cst.Attribute, cst.Lambda)


class Written(str):
    """Python code, also where a running program gives texts: those are themselves."""


def as_given(value: object) -> object:
    """A value as -D has it: an object of a dataclass is the call that makes it, which its repr() is."""
    if isinstance(value, Opaque | DType):
        return value
    return Written(repr(value)) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def given_values(cx: Context, module: Env) -> Mapping[str, object]:
    """The values of the names given with -D. `module` is the scope of the user's file."""
    return {name: given_value(cx, name, module) for name in cx.bindings.given if not name.startswith(ENVIRONMENT)}


def given_value(cx: Context, name: str, module: Env) -> object:
    """The value of one name given with -D."""
    value = cx.bindings.given[name]
    if not isinstance(value, str) or (cx.live is not None and not isinstance(value, Written)):
        return value
    try:
        source = source_file(f"-D {name}", value)
    except Tile2CuError:
        return value  # a text that is no Python
    node = _expression(source.module)
    if node is None:
        return value
    cx.source.attach(source)
    found = evaluate(cx, node, module)
    if not isinstance(found, Opaque):
        return found
    if isinstance(node, cst.Attribute):
        return value
    raise Tile2CuError(
        "T2C-F008",
        f"`{found.what}` is known only by running the file",
        source.span(node),
        help="write numbers, texts, tuples and lists, or call a class or function of the file",
    )


def _expression(module: cst.Module) -> cst.BaseExpression | None:
    """The expression that a text is, if it is one of those that are evaluated."""
    match module.body:
        case [cst.SimpleStatementLine(body=[cst.Expr(value=found)])] if isinstance(found, _EXPRESSIONS):
            return found
        case _:
            return None
