"""The evaluator of expressions: LibCST nodes to values. Nothing of the user's file is executed by Python."""

import ast
import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence

import libcst as cst
from msgspec.structs import replace

from tile2cu.core.dtype import DType
from tile2cu.core.expr import Expr, Role, Var
from tile2cu.frontend import attributes, builtins, classes, imports, ir_passes, language, operators
from tile2cu.frontend.assign import bind_target
from tile2cu.frontend.context import Context
from tile2cu.frontend.environment import ENVIRON, variable
from tile2cu.frontend.fault import Exhausted, Fault, did_you_mean
from tile2cu.frontend.limits import MAX_CALLS
from tile2cu.frontend.lower import elementwise, lanes, tiles
from tile2cu.frontend.operators import truth
from tile2cu.frontend.parse import source_file
from tile2cu.frontend.scope import Env
from tile2cu.frontend.subscript import subscript
from tile2cu.frontend.values import (
    Arguments,
    Builtin,
    Class,
    Deferred,
    Function,
    Instance,
    Interval,
    NodeKind,
    Opaque,
    TileValue,
    describe,
)

_BINARY: dict[type[cst.CSTNode], str] = {
    cst.Add: "+", cst.Subtract: "-", cst.Multiply: "*", cst.Divide: "/", cst.FloorDivide: "//", cst.Modulo: "%",
    cst.Power: "**", cst.LeftShift: "<<", cst.RightShift: ">>", cst.BitAnd: "&", cst.BitOr: "|", cst.BitXor: "^",
    cst.AddAssign: "+", cst.SubtractAssign: "-", cst.MultiplyAssign: "*", cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//", cst.ModuloAssign: "%", cst.PowerAssign: "**", cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>", cst.BitAndAssign: "&", cst.BitOrAssign: "|", cst.BitXorAssign: "^",
}  # fmt: skip
_COMPARE: dict[type[cst.CSTNode], str] = {
    cst.LessThan: "<", cst.LessThanEqual: "<=", cst.GreaterThan: ">", cst.GreaterThanEqual: ">=",
    cst.Equal: "==", cst.NotEqual: "!=",
}  # fmt: skip


_STEPS_OF_A_PARSER = 500  # what parsing a text of one expression takes


def operator_text(node: cst.CSTNode) -> str:
    """The operator of a binary operation or an augmented assignment, without its `=`."""
    if type(node) not in _BINARY:
        raise Fault("T2C-F012", "this operator is not supported")
    return _BINARY[type(node)]


def evaluate(cx: Context, node: cst.BaseExpression, env: Env) -> object:
    """The value of an expression. Raises Tile2CuError at the innermost place that fails."""
    try:
        cx.budget.step()
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise Fault("T2C-F012", f"`{type(node).__name__}` expressions are not supported")
        return handler(cx, node, env)
    except Exhausted:
        raise
    except Fault as fault:
        raise fault.at(cx.source.span(node)) from None


def _name(cx: Context, node: cst.Name, env: Env) -> object:
    scope = env.find(node.value)
    if scope is not None:
        value = scope.values[node.value]
        return imports.resolve(cx, value) if isinstance(value, Deferred) else value
    found = builtins.lookup(node.value)
    if found is not builtins.MISSING:
        return found
    if node.value in attributes.BUILTINS:
        return attributes.BUILTINS[node.value]
    ended = env.where_ended(node.value)
    if ended is not None:
        raise Fault(
            "T2C-F009",
            f"`{node.value}` was bound inside a loop or branch of the kernel that ended before this line",
            help=f"bind it before, or keep it in `{node.value} = T.alloc_var(...)`",
        )
    star = env.find("*")
    if star is not None:
        module = star.values["*"]
        wanted = replace(module, name=node.value) if isinstance(module, Deferred) else None
        return Opaque(node.value, cx.source.span(node)) if wanted is None else imports.resolve(cx, wanted)
    driver = cx.bindings.variable(node.value) if cx.live is None else cx.live.variable(node.value, cx.source.span(node))
    if driver is not None:
        return cx.bind_static(node.value, driver.value, driver.span, formula="", comment="", origin=driver.origin)
    if node.value in builtins.PYTHON:
        raise Fault("T2C-F013", f"`{node.value}` is not available", help="tile2cu reads the file without running it")
    known = [*env.names(), *builtins.NAMES]
    near = f"did you mean `T.{node.value}`?" if language.is_name(node.value) else did_you_mean(node.value, known)
    raise Fault("T2C-F009", f"`{node.value}` is not defined", help=near)


def _integer(cx: Context, node: cst.Integer, env: Env) -> object:
    text = node.value.replace("_", "")
    cx.budget.integer(4 * len(text))
    return int(text, 0) if text.lstrip("0") else 0


def _float(cx: Context, node: cst.Float, env: Env) -> object:
    return float(node.value.replace("_", ""))


def _string(cx: Context, node: cst.SimpleString, env: Env) -> object:
    value = _literal(node.value)
    cx.budget.text(len(value))
    return _encodable(value)


@functools.lru_cache(maxsize=1024)  # Python compiles the text, and drivers run the same lines in loops
def _literal(text: str) -> str | bytes:
    found: str | bytes = ast.literal_eval(text)
    return found


def _encodable(value: str | bytes) -> str | bytes:
    """A literal's value. Errors: half of a surrogate pair, which no file can contain."""
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise Fault("T2C-F014", "half of a surrogate pair is no character", help="write it as \\U and 8 digits")
    return value


def _concatenated(cx: Context, node: cst.ConcatenatedString, env: Env) -> object:
    return operators.binary(cx.budget, "+", evaluate(cx, node.left, env), evaluate(cx, node.right, env))


def _formatted(cx: Context, node: cst.FormattedString, env: Env) -> object:
    parts: list[str] = []
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            parts.append(_formatted_text(node, part))
            continue
        assert isinstance(part, cst.FormattedStringExpression)
        value = evaluate(cx, part.expression, env)
        if isinstance(value, Opaque):
            return value
        spec = "".join(item.value for item in part.format_spec or () if isinstance(item, cst.FormattedStringText))
        parts.append(builtins.formatted(cx, value, spec, part.conversion or ""))
    text = "".join(parts)
    cx.budget.text(len(text))
    return text


def _formatted_text(node: cst.FormattedString, part: cst.FormattedStringText) -> str:
    """The characters between the values of a formatted string; one that is not raw has escape sequences."""
    value = part.value.replace("{{", "{").replace("}}", "}")
    if "\\" in value and "r" not in node.prefix.lower():
        with contextlib.suppress(SyntaxError), warnings.catch_warnings():  # a single backslash before a value stays
            warnings.simplefilter("ignore")
            value = ast.literal_eval(f"{node.quote}{value}{node.quote}")
    return str(_encodable(value))


def _attribute(cx: Context, node: cst.Attribute, env: Env) -> object:
    value, text = evaluate(cx, node.value, env), cx.source.code(node)
    if isinstance(value, Opaque):
        return Opaque(text, cx.source.span(node), value.reason)
    found = attributes.attribute(cx, value, node.attr.value, text)
    return imports.resolve(cx, found) if isinstance(found, Deferred) else found


def _call(cx: Context, node: cst.Call, env: Env) -> object:
    if isinstance(node.func, cst.Name) and node.func.value == "eval" and env.find_quietly("eval") is None:
        return _eval(cx, node, env)
    function = evaluate(cx, node.func, env)
    arguments = call_arguments(cx, node, env)
    return apply(cx, function, arguments, node)


def _eval(cx: Context, node: cst.Call, env: Env) -> object:
    """`eval(text)`: the expression of a text that is known, evaluated as if it were written here."""
    given = call_arguments(cx, node, env)
    text = given.positional[0] if len(given.positional) == 1 and not given.named else None
    if not isinstance(text, str):
        raise Fault("T2C-F013", "`eval` takes one text that is known", help="tile2cu reads the file without running it")
    cx.budget.step(_STEPS_OF_A_PARSER + len(text))
    place = cx.source.span(node)
    written = source_file(f"{place.file}:{place.line}: eval", text.strip())
    match written.module.body:
        case [cst.SimpleStatementLine(body=[cst.Expr(value=expression)])]:
            cx.source.attach(written)
        case _:
            raise Fault("T2C-F013", "the text of `eval` is no expression")
    cx.budget.calls += 1
    if cx.budget.calls > MAX_CALLS:
        raise Fault("T2C-F015", f"texts of `eval` are inside one another more than {MAX_CALLS} levels deep")
    try:
        return evaluate(cx, expression, env)
    finally:
        cx.budget.calls -= 1


def call_arguments(cx: Context, node: cst.Call, env: Env) -> Arguments:
    """The arguments of a call, in the order they are written."""
    positional: list[object] = []
    named: dict[str, object] = {}
    for arg in node.args:
        value = evaluate(cx, arg.value, env)
        if arg.star == "*":
            positional += builtins.items(cx, value)
        elif arg.star == "**":
            if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
                raise Fault("T2C-F014", f"`**` needs a dict with string keys, not {describe(value)}")
            named.update(value)
        elif arg.keyword is not None:
            named[arg.keyword.value] = value
        else:
            positional.append(value)
    return Arguments(tuple(positional), named)


def apply(cx: Context, function: object, arguments: Arguments, node: cst.BaseExpression) -> object:
    """Call a value."""
    outer, cx.here = cx.here, cx.source.span(node)
    try:
        match function:
            case Builtin():
                return builtins.invoke(cx, function, arguments)
            case Function():
                return cx.call_function(cx, function, arguments)
            case DType() if not arguments.positional and not arguments.named:
                return function  # `n: T.int32()`
            case DType():
                return builtins.invoke(cx, elementwise.cast_to(function), arguments)
            case Class():
                return classes.instantiate(cx, function, arguments)
            case NodeKind():
                return ir_passes.make(cx, function, arguments)
            case Instance():
                return classes.call(cx, function, arguments, cx.source.code(node)[:60])
            case Opaque():
                return Opaque(cx.source.code(node)[:60], cx.here, function.reason)
            case _:
                raise Fault("T2C-F014", f"{describe(function)} cannot be called")
    finally:
        cx.here = outer


def _subscript(cx: Context, node: cst.Subscript, env: Env) -> object:
    base = evaluate(cx, node.value, env)
    if base is ENVIRON:
        (name,) = subscript_items(cx, node, env)
        return variable(cx, name, cx.source.span(node), cx.source.code(node))
    if isinstance(base, Instance) and base.of is None:  # of another library
        return Opaque(cx.source.code(node), cx.source.span(node))
    return subscript(cx, base, subscript_items(cx, node, env))


def subscript_items(cx: Context, node: cst.Subscript, env: Env) -> tuple[object, ...]:
    """What is between the brackets: a value or an Interval for each comma."""
    found: list[object] = []
    for element in node.slice:
        match element.slice:
            case cst.Index(value=value):
                item = evaluate(cx, value, env)
                found += item if isinstance(item, tuple) and len(node.slice) == 1 else [item]
            case cst.Slice(lower=lower, upper=upper, step=step):
                if step is not None:
                    raise Fault("T2C-F012", "slices with a step are not supported")
                found.append(
                    Interval(
                        None if lower is None else evaluate(cx, lower, env),
                        None if upper is None else evaluate(cx, upper, env),
                    )
                )
    return tuple(found)


def _binary(cx: Context, node: cst.BinaryOperation, env: Env) -> object:
    lhs, rhs = evaluate(cx, node.left, env), evaluate(cx, node.right, env)
    if lanes.takes_part(lhs) or lanes.takes_part(rhs):
        return lanes.operate(cx, operator_text(node.operator), lhs, rhs)
    if tiles.takes_part(lhs) or tiles.takes_part(rhs):
        return tiles.binary(cx, operator_text(node.operator), lhs, rhs)
    return operators.binary(cx.budget, operator_text(node.operator), lhs, rhs)


def _unary(cx: Context, node: cst.UnaryOperation, env: Env) -> object:
    value = evaluate(cx, node.expression, env)
    match node.operator:
        case cst.Not():
            if isinstance(value, Expr) and not is_flag(value):
                return operators.negation(cx.budget, value)
            return value if isinstance(value, Opaque) else not truth(value, "`not`")
        case cst.Minus() if lanes.takes_part(value):
            return lanes.operate(cx, "-", 0, value)
        case cst.Minus() if tiles.takes_part(value):
            return tiles.apply(cx, lambda part: operators.unary(cx.budget, "-", part), value)
        case cst.Minus():
            return operators.unary(cx.budget, "-", value)
        case cst.BitInvert() if tiles.takes_part(value):
            return tiles.apply(cx, lambda part: operators.unary(cx.budget, "~", part), value)
        case cst.BitInvert():
            return operators.unary(cx.budget, "~", value)
        case _:
            return operators.unary(cx.budget, "+", value)


def is_flag(value: object) -> bool:
    """Whether a condition is an open size alone: a flag that should have been bound, not a size."""
    return isinstance(value, Var) and value.role is Role.SIZE


def _boolean(cx: Context, node: cst.BooleanOperation, env: Env) -> object:
    word = "and" if isinstance(node.operator, cst.And) else "or"
    left = evaluate(cx, node.left, env)
    if isinstance(left, Opaque):
        return left
    if not isinstance(left, Expr) or is_flag(left):
        decided = truth(left, f"`{word}`") != (word == "and")
        return left if decided else evaluate(cx, node.right, env)
    return _logical(cx, word, left, evaluate(cx, node.right, env))


def _logical(cx: Context, word: str, left: Expr, right: object) -> object:
    """`left and right` or `left or right`, where at least the left is known only at run time."""
    if isinstance(right, Opaque):
        return right
    if not isinstance(right, Expr) or is_flag(right):
        decides = truth(right, f"`{word}`") == (word == "or")
        return (word == "or") if decides else left
    return operators.binary_logical(cx.budget, word, left, right)


def _comparison(cx: Context, node: cst.Comparison, env: Env) -> object:
    left = evaluate(cx, node.left, env)
    result: object = True
    for target in node.comparisons:
        right = evaluate(cx, target.comparator, env)
        step = _compare(cx, target.operator, left, right, node)
        if isinstance(step, Opaque) or (isinstance(step, TileValue) and len(node.comparisons) == 1):
            return step
        if isinstance(result, Expr):
            result = _logical(cx, "and", result, step)
        elif not isinstance(step, Expr) and not truth(step):
            return False
        else:
            result = step
        left = right
    return result


def _compare(cx: Context, operator: cst.BaseCompOp, left: object, right: object, node: cst.Comparison) -> object:
    if type(operator) in _COMPARE and tiles.compares(_COMPARE[type(operator)], left, right):
        return tiles.binary(cx, _COMPARE[type(operator)], left, right)
    if type(operator) in _COMPARE:
        result = operators.binary(cx.budget, _COMPARE[type(operator)], left, right)
        cx.note_comparison(_COMPARE[type(operator)], left, right, result, node)
        return result
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        return left if isinstance(left, Opaque) else right
    if isinstance(operator, cst.Is | cst.IsNot):
        return builtins.identical(left, right) == isinstance(operator, cst.Is)
    return builtins.contains(cx, left, right) == isinstance(operator, cst.In)


def _conditional(cx: Context, node: cst.IfExp, env: Env) -> object:
    test = evaluate(cx, node.test, env)
    if not isinstance(test, Expr) or is_flag(test) or not cx.recorder.tracing:
        chosen = truth(test, "the condition of this `if`")
        return evaluate(cx, node.body if chosen else node.orelse, env)
    return elementwise.select(cx, test, evaluate(cx, node.body, env), evaluate(cx, node.orelse, env))


def _lambda(cx: Context, node: cst.Lambda, env: Env) -> object:
    return Function("<lambda>", node, env, parameter_defaults(cx, node.params, env))


def parameter_defaults(cx: Context, params: cst.Parameters, env: Env) -> dict[str, object]:
    """The values of parameters' defaults, evaluated where the function is defined."""
    listed = (*params.posonly_params, *params.params, *params.kwonly_params)
    return {param.name.value: evaluate(cx, param.default, env) for param in listed if param.default is not None}


def _elements(cx: Context, elements: Sequence[cst.BaseElement], env: Env) -> list[object]:
    found: list[object] = []
    for element in elements:
        value = evaluate(cx, element.value, env)
        found += builtins.items(cx, value) if isinstance(element, cst.StarredElement) else [value]
    cx.budget.sequence(len(found))
    return found


def _tuple(cx: Context, node: cst.Tuple, env: Env) -> object:
    return tuple(_elements(cx, node.elements, env))


def _list(cx: Context, node: cst.List, env: Env) -> object:
    return _elements(cx, node.elements, env)


def _set(cx: Context, node: cst.Set, env: Env) -> object:
    return list(dict.fromkeys(builtins.key(cx, item) for item in _elements(cx, node.elements, env)))


def _dict(cx: Context, node: cst.Dict, env: Env) -> object:
    found: dict[object, object] = {}
    for element in node.elements:
        value = evaluate(cx, element.value, env)
        if isinstance(element, cst.DictElement):
            found[builtins.key(cx, evaluate(cx, element.key, env))] = value
        elif isinstance(value, dict):
            found.update(value)
    cx.budget.sequence(len(found))
    return found


def _comprehension(cx: Context, node: cst.ListComp | cst.GeneratorExp | cst.SetComp, env: Env) -> object:
    found = [evaluate(cx, node.elt, inner) for inner in _turns(cx, node.for_in, Env(env))]
    cx.budget.sequence(len(found))
    return list(dict.fromkeys(builtins.key(cx, item) for item in found)) if isinstance(node, cst.SetComp) else found


def _dict_comprehension(cx: Context, node: cst.DictComp, env: Env) -> object:
    return {
        builtins.key(cx, evaluate(cx, node.key, inner)): evaluate(cx, node.value, inner)
        for inner in _turns(cx, node.for_in, Env(env))
    }


def _turns(cx: Context, clause: cst.CompFor, env: Env) -> Iterator[Env]:
    """The scope of a comprehension, once for each of its iterations."""
    for value in builtins.items(cx, evaluate(cx, clause.iter, env)):
        bind_target(cx, clause.target, value, env)
        if all(truth(evaluate(cx, condition.test, env)) for condition in clause.ifs):
            if clause.inner_for_in is None:
                yield env
            else:
                yield from _turns(cx, clause.inner_for_in, env)


def _walrus(cx: Context, node: cst.NamedExpr, env: Env) -> object:
    value = evaluate(cx, node.value, env)
    bind_target(cx, node.target, value, env)
    return value


def _ellipsis(cx: Context, node: cst.Ellipsis, env: Env) -> object:
    return Opaque("...", cx.source.span(node))


_HANDLERS: dict[type[cst.CSTNode], Callable[..., object]] = {
    cst.Name: _name,
    cst.Integer: _integer,
    cst.Float: _float,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _concatenated,
    cst.FormattedString: _formatted,
    cst.Attribute: _attribute,
    cst.Call: _call,
    cst.Subscript: _subscript,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean,
    cst.Comparison: _comparison,
    cst.IfExp: _conditional,
    cst.Lambda: _lambda,
    cst.Tuple: _tuple,
    cst.List: _list,
    cst.Set: _set,
    cst.Dict: _dict,
    cst.ListComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.SetComp: _comprehension,
    cst.DictComp: _dict_comprehension,
    cst.NamedExpr: _walrus,
    cst.Ellipsis: _ellipsis,
}
