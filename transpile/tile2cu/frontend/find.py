"""Which functions of a file are kernels: factories, eager functions and module-level prim_funcs."""

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

import libcst as cst

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.execute import statements
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Builtin, Function, FunctionKind

_KEPT = 1024  # statements of files whose nested ones are listed: each setting of a kernel asks again


class Form(Enum):
    """How a kernel is written."""

    FACTORY = "factory"  # a function that returns a prim_func
    EAGER = "eager"  # a jit function whose own body has `with T.Kernel`
    PRIM_FUNC = "prim_func"  # a prim_func at module level


class Kernel(Record, frozen=True, eq=False):
    """A kernel of the file; `name` is the outermost function's."""

    name: str
    form: Form
    function: Function

    def makes(self, name: str) -> bool:
        """Whether `name` is this kernel's with the name of a function inside it behind."""
        inside = (node.name.value for node in _body(self.function.node) if isinstance(node, cst.FunctionDef))
        return any(name == f"{self.name}_{inner}" for inner in inside)


def kernels(cx: Context, env: Env) -> tuple[Kernel, ...]:
    """The kernels of a module, in the order of the file."""
    bound = {id(value): value for value in env.values.values() if isinstance(value, Function)}
    functions = [function for function in bound.values() if function.env is env]
    found = [kernel for function in functions if (kernel := _as_kernel(cx, function)) is not None]
    used = {name for kernel in found for name in _called_names(kernel)}
    tops = [kernel for kernel in found if kernel.function.kind is not FunctionKind.PLAIN or kernel.name not in used]
    return tuple(sorted(tops, key=lambda kernel: cx.source.span(kernel.function.node).line))


def kernel_named(cx: Context, env: Env, name: str) -> Kernel | None:
    """The kernel of that name in a module; that other functions call it does not hide it from those who name it.

    So named, a function is a factory, too, that gets its prim_func from another file's.
    """
    function = env.values.get(name)
    if not isinstance(function, Function) or function.env is not env or not isinstance(function.node, cst.FunctionDef):
        return None
    found = _as_kernel(cx, function)
    lines = (each for each in _own_body(function.node) if isinstance(each, cst.SimpleStatementLine))
    returns = any(isinstance(small, cst.Return) for line in lines for small in line.body)
    makes = found is None and function.kind is FunctionKind.PLAIN and returns
    return Kernel(name, Form.FACTORY, function) if makes else found


def importing_makers(module: cst.Module) -> tuple[str, ...]:
    """The functions of a module with a `@T.prim_func` inside, by how it is written: T may be a name of their own."""
    tops = (node for node in module.body if isinstance(node, cst.FunctionDef))
    return tuple(node.name.value for node in tops if any(map(_is_spelt_prim_func, _body(node))))


def _is_spelt_prim_func(node: cst.CSTNode) -> bool:
    decorators = node.decorators if isinstance(node, cst.FunctionDef) else ()
    written = (each.decorator for each in decorators)
    return any(isinstance(each, cst.Attribute) and each.attr.value == "prim_func" for each in written)


def _as_kernel(cx: Context, function: Function) -> Kernel | None:
    if not isinstance(function.node, cst.FunctionDef):
        return None
    match function.kind:
        case FunctionKind.PRIM_FUNC:
            return Kernel(function.name, Form.PRIM_FUNC, function)
        case FunctionKind.JIT:
            eager = _launches(cx, function.node, function.env)
            return Kernel(function.name, Form.EAGER if eager else Form.FACTORY, function)
        case FunctionKind.PLAIN if _makes_kernel(cx, function.node, function.env):
            return Kernel(function.name, Form.FACTORY, function)
        case _:
            return None


@lru_cache(maxsize=_KEPT)
def _body(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """All statements below a statement, those of nested functions included."""
    return tuple(_statements_below(node))


def _statements_below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    body = getattr(node, "body", None)
    if isinstance(body, cst.BaseSuite):
        for inner in statements(body):
            yield inner
            yield from _statements_below(inner)
    orelse = getattr(node, "orelse", None)
    if isinstance(orelse, cst.If | cst.Else):
        yield orelse
        yield from _statements_below(orelse)


@lru_cache(maxsize=_KEPT)
def _own_body(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """All statements below a statement, those of nested functions left out."""
    nested = {inner for each in _body(node) if isinstance(each, cst.FunctionDef) for inner in _body(each)}
    return tuple(inner for inner in _body(node) if inner not in nested)


def definitions(cx: Context, node: cst.CSTNode, env: Env) -> Iterator[cst.FunctionDef]:
    """The functions that a statement defines which are prim_funcs or make them."""
    for inner in (node, *_own_body(node)):
        if isinstance(inner, cst.FunctionDef) and (_is_prim_func(cx, inner, env) or _defines_prim_func(cx, inner, env)):
            yield inner


def returns_a_value(node: cst.FunctionDef) -> bool:
    """Whether a function's own body has a `return` of something."""
    lines = (line for line in _own_body(node) if isinstance(line, cst.SimpleStatementLine))
    return any(isinstance(small, cst.Return) and small.value is not None for line in lines for small in line.body)


def _launches(cx: Context, node: cst.FunctionDef, env: Env) -> bool:
    """Whether a function's own body has `with T.Kernel(...)`."""
    calls = (
        item.item.func
        for inner in _own_body(node)
        if isinstance(inner, cst.With)
        for item in inner.items
        if isinstance(item.item, cst.Call)
    )
    return any(_is(cx, call, env, name) for call in calls for name in ("T.Kernel", "T.ClusterKernel"))


def _makes_kernel(cx: Context, node: cst.FunctionDef, env: Env) -> bool:
    """Whether a plain function is a kernel's factory: by a prim_func in it, or a jit function that calls others."""
    return _defines_prim_func(cx, node, env) or any(
        isinstance(inner, cst.FunctionDef) and _is_jit(cx, inner, env) and _returns_factory(cx, inner, env)
        for inner in _body(node)
    )


def _is_jit(cx: Context, node: cst.FunctionDef, env: Env) -> bool:
    decorators = (each.decorator for each in node.decorators)
    named = (each.func if isinstance(each, cst.Call) else each for each in decorators)
    return any(_is(cx, name, env, "tilelang.jit") for name in named)


def _returns_factory(cx: Context, node: cst.FunctionDef, env: Env) -> bool:
    """Whether a function returns what a function of the module makes that has a prim_func."""
    lines = (line for line in _own_body(node) if isinstance(line, cst.SimpleStatementLine))
    values = (small.value for line in lines for small in line.body if isinstance(small, cst.Return))
    called = (value.func.value for value in values if isinstance(value, cst.Call) and isinstance(value.func, cst.Name))
    scopes = ((name, env.find_quietly(name)) for name in called)
    made = (scope.values[name] for name, scope in scopes if scope is not None)
    return any(isinstance(each, Function) and defines_prim_func(cx, each) for each in made)


def defines_prim_func(cx: Context, function: Function) -> bool:
    """Whether a function makes a prim_func: an undecorated factory."""
    plain = function.kind is FunctionKind.PLAIN and isinstance(function.node, cst.FunctionDef)
    return plain and _defines_prim_func(cx, function.node, function.env)  # type: ignore[arg-type]


def makes_prim_func(cx: Context, function: Function) -> bool:
    """Whether a call of a jit function gives a prim_func: it is no eager kernel."""
    made = isinstance(function.node, cst.FunctionDef) and _defines_prim_func(cx, function.node, function.env)
    return made and not _launches(cx, function.node, function.env)  # type: ignore[arg-type]


def _defines_prim_func(cx: Context, node: cst.FunctionDef, env: Env) -> bool:
    return any(_is_prim_func(cx, inner, env) for inner in _body(node) if isinstance(inner, cst.FunctionDef))


def _is_prim_func(cx: Context, node: cst.FunctionDef, env: Env) -> bool:
    return any(_is(cx, decorator.decorator, env, "T.prim_func") for decorator in node.decorators)


def _is(cx: Context, node: cst.BaseExpression, env: Env, name: str) -> bool:
    """Whether an expression is the builtin of that name."""
    try:
        value = evaluate(cx, node, env)
    except Tile2CuError:
        return False
    return isinstance(value, Builtin) and value.name == name


def _called_names(kernel: Kernel) -> Iterator[str]:
    """The names that a kernel's statements call directly, as in `return make(M)`."""
    for node in _body(kernel.function.node):
        if isinstance(node, cst.SimpleStatementLine):
            for small in node.body:
                value = getattr(small, "value", None)
                if isinstance(value, cst.Call) and isinstance(value.func, cst.Name):
                    yield value.func.value


def parameter_names(kernel: Kernel) -> Iterator[str]:
    """The names of parameters of a kernel's function and of the factories inside it."""
    for node in (kernel.function.node, *_body(kernel.function.node)):
        if isinstance(node, cst.FunctionDef):
            for param in (*node.params.params, *node.params.kwonly_params):
                yield param.name.value
