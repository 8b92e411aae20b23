"""Functions that compile and launch the kernels that they define, as tests do, instead of returning them.

Such a driver is run up to its last kernel's definition: what follows launches the kernels and changes nothing of them.
"""

import re
from collections.abc import Iterator, Sequence

import libcst as cst
from msgspec.structs import replace

from tile2cu.core.record import Record
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.execute import run_body, statements
from tile2cu.frontend.find import definitions, returns_a_value
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Builtin, Function, FunctionKind


class Driver(Record, frozen=True, kw_only=True, eq=False):
    """The body of a function that launches its kernels: up to the last definition of one, and what follows."""

    defining: Sequence[cst.CSTNode]
    launching: Sequence[cst.CSTNode]


def as_driver(cx: Context, function: Function) -> Driver | None:
    """The body of a driver; None of a function that returns its kernels, or only defines them."""
    if not isinstance(function.node, cst.FunctionDef) or returns_a_value(function.node):
        return None
    body = statements(function.node.body)
    defined = {at: names for at, node in enumerate(body) if (names := _names(cx, node, function.env))}
    if not defined:
        return None
    end = max(defined) + 1
    words = {word for node in body[end:] for word in re.findall(r"\w+", cx.source.code(node))}
    is_used = any(names & words for names in defined.values())
    return Driver(defining=body[:end], launching=body[end:]) if is_used else None


def _names(cx: Context, node: cst.CSTNode, env: Env) -> set[str]:
    return {each.name.value for each in definitions(cx, node, env)}


def kernels_of(cx: Context, driver: Driver, function: Function, env: Env) -> object:
    """The kernel that a driver defines, or a tuple of them; each with the `out_idx` that it is compiled with."""
    run_body(cx, driver.defining, env)
    defined = {each for node in driver.defining for each in definitions(cx, node, env)}
    made = [each for each in env.values.values() if isinstance(each, Function) and each.node in defined]
    made = [_compiled(cx, each, driver, function, env) for each in made]
    return made[0] if len(made) == 1 else tuple(made)


def _compiled(cx: Context, kernel: Function, driver: Driver, function: Function, env: Env) -> Function:
    """A kernel as `tilelang.compile(kernel, out_idx=...)` makes it, which does what the decorator does."""
    if kernel.kind is not FunctionKind.PRIM_FUNC:
        return kernel
    for call in (call for node in driver.launching for call in _calls_with(kernel.name, node)):
        named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        compiles = evaluate(cx, call.func, env)
        if "out_idx" in named and isinstance(compiles, Builtin) and compiles.name == "tilelang.compile":
            out_idx = evaluate(cx, named["out_idx"], env)
            return replace(kernel, maker=replace(function, kind=FunctionKind.JIT, out_idx=out_idx))
    return kernel


def _calls_with(name: str, node: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls below a node whose first argument is a name."""
    if isinstance(node, cst.Call) and node.args:
        first = node.args[0].value
        if isinstance(first, cst.Name) and first.value == name:
            yield node
    for child in node.children:
        yield from _calls_with(name, child)
