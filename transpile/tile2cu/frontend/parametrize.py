"""`@pytest.mark.parametrize(names, values)`: a function's first set of values, as the defaults of its parameters."""

import libcst as cst

from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.fault import Exhausted, Fault
from tile2cu.frontend.scope import Env


def first_values(cx: Context, node: cst.FunctionDef, env: Env) -> dict[str, object]:
    """What pytest calls a function with first, by parameter; a decorator that cannot be evaluated gives nothing."""
    found: dict[str, object] = {}
    for decorator in (each.decorator for each in node.decorators):
        if (
            isinstance(decorator, cst.Call)
            and _is_attribute(decorator.func, "mark", "parametrize")
            and len(decorator.args) > 1
        ):
            try:
                found |= _first(cx, decorator.args[0].value, decorator.args[1].value, env)
            except Exhausted:
                raise
            except (Fault, Tile2CuError):
                continue
    return found


def _first(cx: Context, names: cst.BaseExpression, values: cst.BaseExpression, env: Env) -> dict[str, object]:
    named = evaluate(cx, names, env)
    parameters = [name.strip() for name in named.split(",")] if isinstance(named, str) else named
    parts = _first_set(cx, values, env, alone=isinstance(named, str) and len(named.split(",")) == 1)
    if not isinstance(parameters, list | tuple) or not isinstance(parts, list | tuple) or len(parts) != len(parameters):
        return {}
    return {str(name): part for name, part in zip(parameters, parts, strict=True)}


def _first_set(cx: Context, values: cst.BaseExpression, env: Env, *, alone: bool) -> object:
    """The first set of values, one for each parameter; the others of a list that is written here are not evaluated.

    `alone`: there is one parameter, whose values are without a tuple around them.
    """
    if isinstance(values, cst.List | cst.Tuple) and values.elements:
        first = values.elements[0].value
        if isinstance(first, cst.Call) and _is_attribute(first.func, "pytest", "param"):
            return [evaluate(cx, arg.value, env) for arg in first.args if arg.keyword is None]
        found = evaluate(cx, first, env)
    else:
        listed = evaluate(cx, values, env)
        found = listed[0] if isinstance(listed, list | tuple | range) and listed else ()
    return [found] if alone else found


def _is_attribute(node: cst.BaseExpression, owner: str, name: str) -> bool:
    """Whether a node is `owner.name`, or `anything.owner.name`."""
    if not isinstance(node, cst.Attribute) or node.attr.value != name:
        return False
    value = node.value.attr if isinstance(node.value, cst.Attribute) else node.value
    return isinstance(value, cst.Name) and value.value == owner
