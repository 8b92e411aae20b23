"""The host part of a file: module level, `main()` and so on, evaluated as far as it is static.

Nothing here is an error: what cannot be evaluated becomes opaque. Module level gives kernels their constants and
helpers; the rest is read only to find a call of a factory whose sizes were left open.
"""

from collections.abc import Iterator, Sequence

import libcst as cst

from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import execute
from tile2cu.frontend.assign import bind_target
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.execute import statements
from tile2cu.frontend.fault import Exhausted, Fault
from tile2cu.frontend.operators import truth
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Arguments, Function, Opaque

FATAL = "T2C-F015"  # the budget is spent


def module_scope(cx: Context, *, main: bool) -> Env:
    """The names of the module. `main`: whether `if __name__ == "__main__":` is entered."""
    env = Env(declares=True)
    env.values["__name__"] = "__main__" if main else "tile2cu"
    env.values["__file__"] = cx.source.file
    run_host(cx, cx.source.module.body, env)
    return env


def run_host(cx: Context, body: Sequence[cst.CSTNode], env: Env) -> None:
    """Run statements; those that fail leave their names opaque."""
    for node in body:
        try:
            _run(cx, node, env)
        except Exhausted:
            raise
        except (Fault, Tile2CuError) as fault:
            error = fault.at(cx.source.span(node)) if isinstance(fault, Fault) else fault
            if error.code == FATAL or isinstance(node, cst.FunctionDef):
                raise
            for name in _bound_names(node):
                env.bind(name, Opaque(name, error.span, error), cx.source.span(node))


def _run(cx: Context, node: cst.CSTNode, env: Env) -> None:
    match node:
        case cst.If():
            _run_if(cx, node, env)
        case cst.For():
            _run_first_turn(cx, node, env)
        case cst.While() | cst.With():
            run_host(cx, statements(node.body), env)
        case cst.Try():
            run_host(cx, statements(node.body), env)
        case cst.SimpleStatementLine():
            if len(node.body) > 1:
                run_host(cx, node.body, env)
            else:
                execute.run_statement(cx, node, env)
        case cst.ClassDef():
            env.bind(node.name.value, Opaque(node.name.value, cx.source.span(node.name)), cx.source.span(node))
        case _:
            execute.run_statement(cx, node, env)


def _run_first_turn(cx: Context, node: cst.For, env: Env) -> None:
    """A loop of the host: its first turn is enough to see which kernels it calls."""
    values = evaluate(cx, node.iter, env)
    if isinstance(values, list | tuple | range):
        if not values:
            return
        bind_target(cx, node.target, values[0], env)
    else:
        _forget(cx, node, env)
    run_host(cx, statements(node.body), env)


def _run_if(cx: Context, node: cst.If, env: Env) -> None:
    condition = evaluate(cx, node.test, env)
    if isinstance(condition, Opaque):  # either way may be taken
        _forget(cx, node, env)
        run_host(cx, statements(node.body), env)
    elif truth(condition):
        run_host(cx, statements(node.body), env)
        return
    match node.orelse:
        case cst.If() as chained:
            run_host(cx, (chained,), env)
        case cst.Else(body=body):
            run_host(cx, statements(body), env)
        case _:
            pass


def _forget(cx: Context, node: cst.CSTNode, env: Env) -> None:
    for name in _bound_names(node):
        env.bind(name, Opaque(name, cx.source.span(node)), cx.source.span(node))


def _bound_names(node: cst.CSTNode) -> Iterator[str]:
    """The names that a statement assigns at its own level."""
    match node:
        case cst.SimpleStatementLine():
            for small in node.body:
                yield from _bound_names(small)
        case cst.Assign():
            for target in node.targets:
                yield from _target_names(target.target)
        case cst.AnnAssign() | cst.AugAssign() | cst.For():
            yield from _target_names(node.target)
        case cst.FunctionDef() | cst.ClassDef():
            yield node.name.value
        case _:
            pass


def _target_names(target: cst.BaseExpression) -> Iterator[str]:
    match target:
        case cst.Name(value=name):
            yield name
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _target_names(element.value)
        case _:
            pass


def call_host(cx: Context, function: Function, arguments: Arguments) -> object:
    """Run a function of the host part; statements that fail are passed over."""
    if isinstance(function.node, cst.Lambda):
        return execute.call_plain(cx, function, arguments)
    values = dict(function.defaults) | execute.bind_loosely(function, arguments)
    env = Env(function.env, values=values)
    run_host(cx, statements(function.node.body), env)
    return Opaque(function.name, cx.here)
