"""The executor of plain Python: bodies of factories and helpers, which run to completion at transpile time."""

from collections.abc import Mapping, Sequence

import libcst as cst
from msgspec.structs import replace

from tile2cu.core.expr import Expr
from tile2cu.core.record import Record
from tile2cu.core.span import Span
from tile2cu.frontend import builtins, imports, managers, modules, operators
from tile2cu.frontend.assign import bind_target, unpack
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate, operator_text, parameter_defaults, subscript_items
from tile2cu.frontend.fault import Exhausted, Fault, did_you_mean
from tile2cu.frontend.limits import MAX_CALLS
from tile2cu.frontend.operators import truth
from tile2cu.frontend.parametrize import first_values
from tile2cu.frontend.parse import trailing_comment
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import (
    Allocation,
    Arguments,
    Builtin,
    Deferred,
    Function,
    FunctionKind,
    Instance,
    Jit,
    Opaque,
    TorchTensor,
    describe,
)


class Return(Record, frozen=True):
    """A `return` statement was reached; `place` is that of one in a kernel."""

    value: object
    place: Span | None = None


class Jump(Record, frozen=True):
    """A `break` or `continue` statement was reached."""

    leave: bool


Flow = Return | Jump | None


def statements(body: cst.BaseSuite) -> Sequence[cst.BaseStatement | cst.BaseSmallStatement]:
    """The statements of a block, or of `if x: a; b` on one line."""
    return body.body


def otherwise(node: cst.If) -> Sequence[cst.CSTNode]:
    """The statements of a branch that run where its condition does not hold."""
    match node.orelse:
        case cst.If() as chained:
            return (chained,)
        case cst.Else(body=body):
            return statements(body)
        case _:
            return ()


def run_body(cx: Context, body: Sequence[cst.CSTNode], env: Env) -> Flow:
    """Run statements until one returns or jumps."""
    for node in body:
        flow = run_statement(cx, node, env)
        if flow is not None:
            return flow
    return None


def run_statement(cx: Context, node: cst.CSTNode, env: Env) -> Flow:
    """Run one statement of plain Python."""
    try:
        cx.budget.step()
        match node:
            case cst.SimpleStatementLine():
                return _run_line(cx, node, env)
            case cst.If():
                return _run_if(cx, node, env)
            case cst.For():
                return _run_for(cx, node, env)
            case cst.While():
                return _run_while(cx, node, env)
            case cst.Try() | cst.With():
                return _run_try(cx, node, env) if isinstance(node, cst.Try) else _run_with(cx, node, env, node.items)
            case cst.FunctionDef():
                define(cx, node, env)
                return None
            case cst.BaseSmallStatement():
                return run_small(cx, node, env, "")
            case _:
                raise unsupported(node)
    except Fault as fault:
        if isinstance(fault, Exhausted) and not isinstance(node, cst.For | cst.While):
            raise
        raise fault.at(cx.source.span(node)) from None


def unsupported(node: cst.CSTNode) -> Fault:
    """The fault of a form of statement that is not supported."""
    word = _WORDS.get(type(node).__name__, type(node).__name__)
    return Fault("T2C-F012", f"`{word}` is not supported here", help=_WAYS_OUT.get(word, ""))


_WORDS = {
    "ClassDef": "class", "Try": "try", "TryStar": "try", "With": "with", "Match": "match", "While": "while",
    "Global": "global", "Nonlocal": "nonlocal", "Raise": "raise", "Break": "break", "For": "for",
    "Continue": "continue", "Return": "return", "Import": "import", "ImportFrom": "import", "FunctionDef": "def",
}  # fmt: skip
_WAYS_OUT = {
    "try": "nothing is raised here that could be caught: leave the `try` out, or ask with `if` before",
    "raise": "`assert` stops the transpiler, T.device_assert the kernel",
    "global": "return the value, or take it as an argument",
    "nonlocal": "return the value, or take it as an argument",
    "import": "import at the top of the file",
    "class": "define it at the top of the file",
    "match": "write `if` and `elif`",
}


def _run_line(cx: Context, line: cst.SimpleStatementLine, env: Env) -> Flow:
    for node in line.body:
        flow = run_small(cx, node, env, trailing_comment(line))
        if flow is not None:
            return flow
    return None


def run_small(cx: Context, node: cst.BaseSmallStatement, env: Env, comment: str) -> Flow:
    """Run a statement without a body."""
    match node:
        case cst.Expr():
            evaluate(cx, node.value, env)
        case cst.Assign() | cst.AnnAssign():
            _run_assign(cx, node, env, comment)
        case cst.AugAssign():
            _run_augmented(cx, node, env, comment)
        case cst.Return():
            return Return(None if node.value is None else evaluate(cx, node.value, env))
        case cst.Break() | cst.Continue():
            return Jump(leave=isinstance(node, cst.Break))
        case cst.Assert():
            run_assert(cx, node, env)
        case cst.Import() | cst.ImportFrom():
            run_import(cx, node, env)
        case cst.Del():
            forget(cx, node.target, env)
        case cst.Global():
            env.of_module.update(item.name.value for item in node.names)
        case _:
            _run_other(cx, node)
    return None


def _run_other(cx: Context, node: cst.BaseSmallStatement) -> None:
    """`pass`; any other statement that plain Python has is a fault."""
    if isinstance(node, cst.Raise):
        raise Fault("T2C-F014", f"the file raises here: {cx.source.code(node)[:100]}")
    if not isinstance(node, cst.Pass):
        raise unsupported(node)


def forget(cx: Context, target: cst.BaseExpression, env: Env) -> None:
    """`del name`: the name ends here; what it stood for lives on under others."""
    match target:
        case cst.Name(value=name) if name in env.values:
            del env.values[name]
        case cst.Tuple(elements=elements):
            for element in elements:
                forget(cx, element.value, env)
        case cst.Name(value=name):
            raise Fault("T2C-F009", f"`{name}` is not bound here, so `del` has nothing to end")
        case _:
            raise Fault("T2C-F012", f"`del {cx.source.code(target)}` is not supported", help="only names can end")


def _run_assign(cx: Context, node: cst.Assign | cst.AnnAssign, env: Env, comment: str) -> None:
    if node.value is None:
        return
    value = evaluate(cx, node.value, env)
    targets = [node.target] if isinstance(node, cst.AnnAssign) else [target.target for target in node.targets]
    for target in targets:
        assign(cx, target, value, env, formula=cx.source.code(node.value), comment=comment)


def assign(
    cx: Context, target: cst.BaseExpression, value: object, env: Env, *, formula: str, comment: str = ""
) -> None:
    """`target = value` in plain Python; a static number keeps the name where the scope declares constants."""
    match target:
        case cst.Name(value=name):
            env.bind(name, named(cx, name, value, env, target, formula, comment), cx.source.span(target))
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            if isinstance(value, Opaque) and formula.endswith(".shape"):
                _forget_unknown_sizes(cx, elements, value, env)
                return
            parts = unpack(cx, value, len(elements))
            formulas = _part_formulas(formula, len(elements))
            for element, part, text in zip(elements, parts, formulas, strict=True):
                assign(cx, element.value, part, env, formula=text, comment=comment)
        case cst.Attribute():
            _store_attribute(cx, target, value, env)
        case cst.Subscript():
            store_item(cx, evaluate(cx, target.value, env), subscript_items(cx, target, env), value)
        case _:
            raise Fault("T2C-F012", f"`{cx.source.code(target)}` cannot be assigned to")


def _forget_unknown_sizes(cx: Context, elements: Sequence[cst.BaseElement], shape: Opaque, env: Env) -> None:
    """`M, K = x.shape` of a tensor that nothing is known of: names of numbers keep them, the others become unknown."""
    for element in elements:
        name = element.value.value if isinstance(element.value, cst.Name) else None
        if name is None or not isinstance(env.values.get(name), int):
            bind_target(cx, element.value, shape, env)


def _store_attribute(cx: Context, target: cst.Attribute, value: object, env: Env) -> None:
    """`object.name = value`; what is set on something opaque is lost."""
    base = evaluate(cx, target.value, env)
    if isinstance(base, Instance):
        base.values[target.attr.value] = value
    elif not isinstance(base, Opaque | TorchTensor | Function):
        raise Fault("T2C-F012", f"an attribute of {describe(base)} cannot be set")


def _part_formulas(formula: str, count: int) -> list[str]:
    """The text of each part of `a, b = 1, 2`; the whole text where it cannot be distinguished."""
    parts = [part.strip() for part in formula.strip("()").split(",")]
    simple = len(parts) == count and not any(mark in formula.strip("()") for mark in "([{")
    return parts if simple else [formula] * count


def named(cx: Context, name: str, value: object, env: Env, node: cst.CSTNode, formula: str, comment: str) -> object:
    """A value as it is stored under a name."""
    if isinstance(value, Allocation) and value.scope is not None:
        return cx.recorder.allocate(name, value)
    if not env.declares:
        cx.note_name(name, value)
        return value
    return cx.bind_static(name, value, cx.source.span(node), formula=formula, comment=comment)


def store_item(cx: Context, base: object, items: tuple[object, ...], value: object) -> None:
    """`base[item] = value` for Python's own containers."""
    index = items[0] if len(items) == 1 else items
    match base:
        case list():
            at = int(operators.static_int(index, "the index of a list"))
            if not -len(base) <= at < len(base):
                raise Fault("T2C-F014", f"index {at} is outside of a list of {len(base)} items")
            base[at] = value
        case dict():
            base[builtins.key(cx, index)] = value
        case Opaque() | TorchTensor():
            pass
        case _:
            raise Fault("T2C-F031", f"an item of {describe(base)} cannot be assigned here")


def _run_augmented(cx: Context, node: cst.AugAssign, env: Env, comment: str) -> None:
    old = evaluate(cx, node.target, env)
    value = operators.binary(cx.budget, operator_text(node.operator), old, evaluate(cx, node.value, env))
    assign(cx, node.target, value, env, formula=cx.source.code(node), comment=comment)


def run_assert(cx: Context, node: cst.Assert, env: Env) -> None:
    """`assert` of something static."""
    known = frozenset(cx.decided)
    require(cx, node, env, evaluate(cx, node.test, env), known)


def require(cx: Context, node: cst.Assert, env: Env, test: object, known: frozenset[Expr]) -> None:
    """Fails unless the value of an assertion's test holds. `known` are the comparisons decided before it."""
    holds = truth(test, "this assertion")
    made = [condition for condition in cx.decided if condition not in known]
    if holds and not made:
        return
    message = "" if node.msg is None else evaluate(cx, node.msg, env)
    message = message[:200] if isinstance(message, str) else ""
    if not holds:
        raise Fault("T2C-F019", f"the assertion fails{f': {message}' if message else ''}")
    others = {condition for condition in made if not cx.decided[condition].found}  # operands of `or`
    for condition in made:
        decided = cx.decided.pop(condition)
        if condition not in others:
            cx.decided[condition] = decided if others else replace(decided, asserted=True, message=message)


def run_import(cx: Context, node: cst.Import | cst.ImportFrom, env: Env) -> None:
    """`import`: known modules are bound to what the front end knows of them, others when a name is needed."""
    place = cx.source.span(node)
    folder = _folder(env, len(node.relative) if isinstance(node, cst.ImportFrom) else 0)
    origin = cx.source.code(node.module) if isinstance(node, cst.ImportFrom) and node.module is not None else ""
    if isinstance(node.names, cst.ImportStar):
        _import_all(Deferred(folder, origin, None, absolute=not node.relative), env, place)
        return
    for alias in node.names:
        path = cx.source.code(alias.name)
        name = cx.source.code(alias.asname.name) if alias.asname is not None else path
        if isinstance(node, cst.Import):
            wanted = path if alias.asname else path.partition(".")[0]
            module = modules.module(wanted)
            env.bind(name if alias.asname else wanted, module or Deferred(folder, wanted, None, absolute=True), place)
        elif node.relative:
            env.bind(name, Deferred(folder, origin, path), place)
        else:
            env.bind(name, _imported(origin, path, folder), place)


def _folder(env: Env, dots: int) -> str:
    """The folder that an import starts from, relative to the user's file; a package's, where there are dots."""
    scope = env.find_quietly(imports.FOLDER)
    folder = str(scope.values[imports.FOLDER]) if scope is not None else ""
    return "/".join([*filter(None, [folder]), *[".."] * (dots - 1)])


def _import_all(wanted: Deferred, env: Env, place: Span) -> None:
    """`from module import *`; from a module that is not known, any name may come."""
    module = modules.module(wanted.module)
    if module is None:
        env.values["*"] = wanted
        return
    for name, value in modules.all_members(module).items():
        env.bind(name, value, place)


def _imported(origin: str, name: str, folder: str) -> object:
    parent = modules.module(origin)
    if parent is not None:
        return modules.module(f"{origin}.{name}") or modules.member(parent, name, name)
    return modules.module(f"{origin}.{name}") or Deferred(folder, origin, name, absolute=True)


def _run_if(cx: Context, node: cst.If, env: Env) -> Flow:
    if truth(evaluate(cx, node.test, env), "the condition of this `if`"):
        return run_body(cx, statements(node.body), env)
    return run_body(cx, otherwise(node), env)


def _run_for(cx: Context, node: cst.For, env: Env) -> Flow:
    values = evaluate(cx, node.iter, env)
    turns = values if isinstance(values, range) else builtins.items(cx, values)
    for value in turns:
        cx.budget.step()
        bind_target(cx, node.target, value, env)
        flow = run_body(cx, statements(node.body), env)
        if isinstance(flow, Return):
            return flow
        if isinstance(flow, Jump) and flow.leave:
            return None
    return None if node.orelse is None else run_body(cx, statements(node.orelse.body), env)


def _run_while(cx: Context, node: cst.While, env: Env) -> Flow:
    while truth(evaluate(cx, node.test, env), "the condition of this `while`"):
        cx.budget.step()
        flow = run_body(cx, statements(node.body), env)
        if isinstance(flow, Return):
            return flow
        if isinstance(flow, Jump) and flow.leave:
            return None
    return None if node.orelse is None else run_body(cx, statements(node.orelse.body), env)


def _run_with(cx: Context, node: cst.With, env: Env, items: Sequence[cst.WithItem]) -> Flow:
    """`with` of objects of the file's classes; a block that returns leaves them all the same."""
    if not items:
        return run_body(cx, statements(node.body), env)
    flow: Flow = None

    def block(entered: object) -> None:
        nonlocal flow
        if items[0].asname is not None:
            bind_target(cx, items[0].asname.name, entered, env)
        flow = _run_with(cx, node, env, items[1:])

    managers.run(cx, evaluate(cx, items[0].item, env), items[0], block)
    return flow


def _run_try(cx: Context, node: cst.Try, env: Env) -> Flow:
    """`try`: nothing is caught, since what fails here has its own diagnostic."""
    flow = run_body(cx, statements(node.body), env)
    if flow is None and node.orelse is not None:
        flow = run_body(cx, statements(node.orelse.body), env)
    last = None if node.finalbody is None else run_body(cx, statements(node.finalbody.body), env)
    return last or flow


def define(cx: Context, node: cst.FunctionDef, env: Env) -> None:
    """`def`: binds a closure; decorators say what kind of function it is."""
    kind, out_idx, configs, own_barriers = FunctionKind.PLAIN, None, None, False
    for decorator in node.decorators:
        match _decorator(cx, decorator.decorator, env):
            case Builtin(name="tilelang.autotune"):
                configs = _configs(decorator.decorator)
            case Builtin(name="T.prim_func"):
                kind = FunctionKind.PRIM_FUNC
            case Builtin(name="T.macro"):
                kind = FunctionKind.MACRO
            case Builtin(name="tilelang.jit"):
                kind = FunctionKind.JIT
            case Jit(out_idx=found, own_barriers=own):
                kind, out_idx, own_barriers = FunctionKind.JIT, found, own
            case _:
                pass  # a decorator that changes how the function is called, not what it computes
    name = node.name.value
    defaults = first_values(cx, node, env) | parameter_defaults(cx, node.params, env)
    env.bind(name, Function(name, node, env, defaults, kind, out_idx, configs, own_barriers), cx.source.span(node.name))


def _decorator(cx: Context, node: cst.BaseExpression, env: Env) -> object:
    """What a decorator is. Of its arguments, `out_idx` and who writes the barriers are read; others are not."""
    if isinstance(node, cst.Name) and node.value in builtins.PYTHON:
        return Opaque(node.value)
    function = evaluate(cx, node.func if isinstance(node, cst.Call) else node, env)
    if not isinstance(node, cst.Call):
        return function
    if not isinstance(function, Builtin) or function.name != "tilelang.jit":
        return function
    given = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    out_idx = evaluate(cx, given["out_idx"], env) if "out_idx" in given else None
    return Jit(out_idx, "pass_configs" in given and _own_barriers(cx, given["pass_configs"], env))


def _own_barriers(cx: Context, node: cst.BaseExpression, env: Env) -> bool:
    """Whether `pass_configs` states that the user writes all barriers; what else it states is not read."""
    if isinstance(node, cst.Name):
        known = evaluate(cx, node, env)
        return isinstance(known, dict) and known.get(modules.NO_BARRIERS) is True
    items = node.elements if isinstance(node, cst.Dict) else ()
    pairs = (item for item in items if isinstance(item, cst.DictElement))
    keys = (modules.NO_BARRIERS, "TL_DISABLE_THREAD_STORAGE_SYNC")
    found = [item.value for item in pairs if cx.source.code(item.key).strip("\"'").endswith(keys)]
    return bool(found) and evaluate(cx, found[-1], env) is True


def _configs(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The `configs` of `@tilelang.autotune(configs=...)`, not evaluated yet."""
    args = node.args if isinstance(node, cst.Call) else ()
    named = next((arg.value for arg in args if arg.keyword is not None and arg.keyword.value == "configs"), None)
    first = next((arg.value for arg in args if arg.keyword is None), None)
    return named if named is not None else first


def bind_parameters(cx: Context, function: Function, arguments: Arguments) -> dict[str, object]:
    """The values of a function's parameters in a call, by Python's rules."""
    params = function.node.params
    listed = [param.name.value for param in (*params.posonly_params, *params.params)]
    keyword_only = [param.name.value for param in params.kwonly_params]
    found: dict[str, object] = dict(zip(listed, arguments.positional, strict=False))
    extra = arguments.positional[len(listed) :]
    if isinstance(params.star_arg, cst.Param):
        found[params.star_arg.name.value] = tuple(extra)
    elif extra:
        raise Fault("T2C-F017", f"{function.name}() takes {len(listed)} arguments, not {len(arguments.positional)}")
    others: dict[object, object] = {}
    for name, value in arguments.named.items():
        if name in found and name in listed:
            raise Fault("T2C-F017", f"{function.name}() got `{name}` twice")
        if name in listed or name in keyword_only:
            found[name] = value
        elif params.star_kwarg is not None:
            others[name] = value
        else:
            known = did_you_mean(name, [*listed, *keyword_only])
            raise Fault("T2C-F017", f"{function.name}() has no parameter `{name}`", help=known)
    if params.star_kwarg is not None:
        found[params.star_kwarg.name.value] = others
    return _with_defaults(function, [*listed, *keyword_only], found)


def parameter_list(function: Function) -> list[str]:
    """The names of a function's parameters that take positions, in order; then those that do not."""
    params = function.node.params
    return [param.name.value for param in (*params.posonly_params, *params.params, *params.kwonly_params)]


def bind_loosely(function: Function, arguments: Arguments) -> dict[str, object]:
    """The parameters that a call names, whatever else is wrong with it."""
    params = function.node.params
    listed = [param.name.value for param in (*params.posonly_params, *params.params)]
    found = dict(zip(listed, arguments.positional, strict=False))
    if isinstance(params.star_arg, cst.Param):
        found[params.star_arg.name.value] = arguments.positional[len(listed) :]
    others = {name: value for name, value in arguments.named.items() if name not in parameter_list(function)}
    if params.star_kwarg is not None:
        found[params.star_kwarg.name.value] = others
    return found | {name: value for name, value in arguments.named.items() if name not in others}


def _with_defaults(function: Function, names: Sequence[str], found: dict[str, object]) -> dict[str, object]:
    defaults: Mapping[str, object] = function.defaults
    for name in names:
        if name not in found and name not in defaults:
            raise Fault("T2C-F017", f"{function.name}() needs `{name}`")
        found.setdefault(name, defaults.get(name))
    return found


def call_plain(cx: Context, function: Function, arguments: Arguments, *, declares: bool = False) -> object:
    """Run a helper or a lambda to completion; what a factory binds becomes constants of the program."""
    env = Env(function.env, declares=declares, values=bind_parameters(cx, function, arguments))
    for name, value in env.values.items():
        cx.note_name(name, value)
    if isinstance(function.node, cst.Lambda):
        return evaluate(cx, function.node.body, env)
    flow = run_body(cx, statements(function.node.body), env)
    return flow.value if isinstance(flow, Return) else None


def enter_call(cx: Context, function: Function) -> None:
    """Count a call of the user's functions; the caller leaves with `cx.budget.calls -= 1`."""
    cx.budget.calls += 1
    if cx.budget.calls > MAX_CALLS:
        help = "calls run at transpile time: a function that calls itself has to end by a number that is known then"
        raise Fault("T2C-F015", f"{function.name}() is called more than {MAX_CALLS} levels deep", help=help)
