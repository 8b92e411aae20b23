"""The host part of a file: module level, `main()` and so on, evaluated as far as it is static.

Nothing here is an error: what cannot be evaluated becomes opaque. Module level gives kernels their constants and
helpers; the rest is read only to find a call of a factory whose sizes were left open.
"""

import re
from collections.abc import Iterator, Sequence

import libcst as cst
from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import classes, execute
from tile2cu.frontend.assign import bind_target
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.execute import Flow, Jump, Return, statements
from tile2cu.frontend.fault import Exhausted, Fault
from tile2cu.frontend.given import given_value
from tile2cu.frontend.operators import truth
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Arguments, Function, Opaque, TorchTensor

FATAL = "T2C-F015"  # the budget is spent
MAX_TURNS = 64  # of a loop of the host
_UNKNOWN = (Opaque, TorchTensor)


def module_scope(cx: Context, *, main: bool) -> Env:
    """The names of the module. `main`: whether `if __name__ == "__main__":` is entered."""
    env = Env(declares=True)
    env.values["__name__"] = "__main__" if main else "tile2cu"
    env.values["__file__"] = cx.source.file
    for node in cx.source.module.body:
        run_host(cx, (node,), env)
        _take_given_values(cx, env, node)
    _take_live_values(cx, env)
    return env


def _take_given_values(cx: Context, env: Env, node: cst.CSTNode) -> None:
    """The names of an assignment that only running the file would evaluate: -D gives their values."""
    for name in _bound_names(node) if isinstance(node, cst.SimpleStatementLine) else ():
        value = env.values.get(name)
        if not isinstance(value, Opaque):
            continue
        if name in cx.bindings.given:
            cx.bindings.known[name] = None
            env.bind(name, given_value(cx, name, env), cx.source.span(node))
        else:
            remedy = f"tile2cu reads the file without running it; give the value: -D {name}=VALUE"
            env.bind(name, replace(value, help=value.help or remedy), cx.source.span(node))


def _take_live_values(cx: Context, env: Env) -> None:
    """What the module's names have in the program that calls the kernel, where its text alone gives another value."""
    if cx.live is None:
        return
    for name, place in env.places.items():
        found = cx.live.datum(name, place)
        if found is not None and (isinstance(env.values[name], _UNKNOWN) or env.values[name] != found.value):
            env.values[name] = cx.bind_static(name, found.value, place, formula="", comment="", origin=found.origin)


def run_host(cx: Context, body: Sequence[cst.CSTNode], env: Env) -> Flow:
    """Run statements; those that fail leave their names opaque. Gives the `return` that was reached."""
    for node in body:
        try:
            flow = _run(cx, node, env)
        except Exhausted:
            raise
        except (Fault, Tile2CuError) as fault:
            error = fault.at(cx.source.span(node)) if isinstance(fault, Fault) else fault
            if error.code == FATAL or (isinstance(node, cst.FunctionDef) and _is_kernel(cx, node)):
                raise
            for name in _bound_names(node):
                env.bind(name, Opaque(name, error.span, error), cx.source.span(node))
            flow = Return(Opaque("return", error.span, error)) if _returns(node) else None
        if flow is not None:
            return flow
    return None


def _run(cx: Context, node: cst.CSTNode, env: Env) -> Flow:
    match node:
        case cst.If():
            return _run_if(cx, node, env)
        case cst.For():
            return _run_for(cx, node, env)
        case cst.While() | cst.With() | cst.Try():
            flow = run_host(cx, statements(node.body), env)
            return None if isinstance(node, cst.While) and isinstance(flow, Jump) else flow
        case cst.SimpleStatementLine():
            if len(node.body) > 1:
                return run_host(cx, node.body, env)
            return execute.run_statement(cx, node, env)
        case cst.ClassDef():
            _define_class(cx, node, env)
            return None
        case _:
            return execute.run_statement(cx, node, env)


def _is_kernel(cx: Context, node: cst.FunctionDef) -> bool:
    """Whether a function that cannot be defined may have a kernel: then that is an error, else it is opaque."""
    decorators = " ".join(cx.source.code(each) for each in node.decorators)
    code = cx.source.code(node)
    return "Kernel" in code or "prim_func" in code or "jit" in decorators


def _returns(node: cst.CSTNode) -> bool:
    return isinstance(node.body[0] if isinstance(node, cst.SimpleStatementLine) else node, cst.Return)


def _define_class(cx: Context, node: cst.ClassDef, env: Env) -> None:
    """`class`: its body is run like the module's; methods close over the scope around the class."""
    inner = Env(env)
    run_host(cx, statements(node.body), inner)
    values = {
        name: replace(value, env=env) if isinstance(value, Function) and value.env is inner else value
        for name, value in inner.values.items()
    }
    bases = [_base(cx, arg.value, env) for arg in node.bases]
    env.bind(node.name.value, classes.make(node.name.value, node, values, bases), cx.source.span(node))


def _base(cx: Context, node: cst.BaseExpression, env: Env) -> object:
    try:
        return evaluate(cx, node, env)
    except Tile2CuError as error:
        if error.code == FATAL:
            raise
        return Opaque("a base class", error.span, error)


def _run_for(cx: Context, node: cst.For, env: Env) -> Flow:
    """A loop of the host; of a long one, the first iterations are enough to see which kernels it calls."""
    values = evaluate(cx, node.iter, env)
    if not isinstance(values, list | tuple | range | dict):
        _forget(cx, node, env)
        flow = run_host(cx, statements(node.body), env)
        return None if isinstance(flow, Jump) else flow
    for value in list(values)[:MAX_TURNS]:
        bind_target(cx, node.target, value, env)
        flow = run_host(cx, statements(node.body), env)
        if isinstance(flow, Return):
            return flow
        if isinstance(flow, Jump) and flow.leave:
            break
    return None


def _run_if(cx: Context, node: cst.If, env: Env) -> Flow:
    condition = evaluate(cx, node.test, env)
    first: Flow = None
    if isinstance(condition, Opaque | TorchTensor):  # either way may be taken
        _forget(cx, node, env)
        first = run_host(cx, statements(node.body), env)
    elif truth(condition):
        _look_aside(cx, node.orelse, env)
        return run_host(cx, statements(node.body), env)
    else:
        _look_aside(cx, node, env)
    second = run_host(cx, execute.otherwise(node), env)
    if isinstance(condition, Opaque | TorchTensor):
        return second if first is not None else None  # only where both ways leave
    return second


def _look_aside(cx: Context, branch: cst.If | cst.Else | None, env: Env) -> None:
    """A branch that is not taken: a call of the kernel that is only there still states what it is called with."""
    if branch is None or not cx.wanted or not re.search(rf"\b{cx.wanted}\(", cx.source.code(branch.body)):
        return
    cx.aside += 1
    try:
        run_host(cx, statements(branch.body), Env(env))
    finally:
        cx.aside -= 1


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
    for name in execute.parameter_list(function):
        values.setdefault(name, Opaque(name, cx.here))
    env = Env(function.env, values=values)
    flow = run_host(cx, statements(function.node.body), env)
    return flow.value if isinstance(flow, Return) else None
