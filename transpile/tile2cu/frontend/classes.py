"""Classes of a file: plain constants, dataclasses, and the autograd functions that drive kernels."""

from collections.abc import Mapping, Sequence

import libcst as cst
from msgspec.structs import replace

from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault, did_you_mean
from tile2cu.frontend.values import Arguments, Builtin, Class, Deferred, Function, Instance, Opaque


def make(name: str, node: cst.ClassDef, values: dict[str, object], bases: Sequence[object]) -> Class:
    """The class whose body bound `values`."""
    known = [base for base in bases if isinstance(base, Class)]
    merged = {key: value for base in reversed(known) for key, value in base.values.items()} | values
    own = tuple(_annotated(node))
    inherited = tuple(field for base in known for field in base.fields if field not in own)
    foreign = len(known) < len(bases) or any(base.foreign for base in known)
    return Class(name, merged, inherited + own, foreign)


def _annotated(node: cst.ClassDef) -> list[str]:
    lines = [line for line in node.body.body if isinstance(line, cst.SimpleStatementLine)]
    return [
        small.target.value
        for line in lines
        for small in line.body
        if isinstance(small, cst.AnnAssign) and isinstance(small.target, cst.Name)
    ]


def instantiate(cx: Context, of: Class, arguments: Arguments) -> Instance:
    """`Class(...)`: runs `__init__`, or fills the fields of a dataclass."""
    self = Instance(of.name, {}, of)
    init = of.values.get("__init__")
    if isinstance(init, Function):
        cx.call_function(cx, init, Arguments((self, *arguments.positional), arguments.named))
        return self
    self.values.update(zip(of.fields, arguments.positional, strict=False))
    self.values.update(arguments.named)
    if of.fields and not of.foreign:
        _require_fields(of, self.values)
    return self


def _require_fields(of: Class, values: Mapping[str, object]) -> None:
    """A dataclass takes its fields, and needs those without a default."""
    unknown = next((name for name in values if name not in of.fields), None)
    if unknown is not None:
        help = did_you_mean(unknown, of.fields) or f"its fields are {', '.join(of.fields)}"
        raise Fault("T2C-F017", f"`{of.name}` has no field `{unknown}`", help=help)
    missing = next((name for name in of.fields if name not in values and name not in of.values), None)
    if missing is not None:
        raise Fault("T2C-F017", f"`{of.name}` needs a value for its field `{missing}`")


def call(cx: Context, instance: Instance, arguments: Arguments, text: str) -> object:
    """`instance(...)`."""
    method = instance.values.get("__call__")
    if isinstance(method, Builtin):
        return method.run(cx, *arguments.positional, **arguments.named)
    for name in ("__call__", "forward"):
        found = instance.of.values.get(name) if instance.of is not None else None
        if isinstance(found, Function):
            return cx.call_function(cx, found, Arguments((instance, *arguments.positional), arguments.named))
    return Opaque(text, cx.here)


def attribute(cx: Context, value: Class | Instance, name: str, text: str) -> object:
    """`value.name`: attributes of the object, then of its class; methods are bound."""
    if isinstance(value, Instance) and name in value.values:
        return value.values[name]
    if isinstance(value, Instance) and isinstance(star := value.values.get("*"), Deferred):
        return replace(star, name=name)
    of = value if isinstance(value, Class) else value.of
    if of is not None and name in of.values:
        found = of.values[name]
        return _method(cx, value, of, found) if isinstance(found, Function) else found
    if of is not None and name == "apply" and isinstance(of.values.get("forward"), Function):
        return Builtin(text, lambda cx, *args, **named: apply_autograd(cx, of, Arguments(args, named)))
    if of is None or of.foreign:
        return Opaque(text)
    raise Fault("T2C-F013", f"`{of.name}` has no attribute `{name}`")


def _method(cx: Context, value: Class | Instance, of: Class, function: Function) -> object:
    words = _decorators(function)
    if "staticmethod" in words or (isinstance(value, Class) and "classmethod" not in words):
        return function
    first: object = of if "classmethod" in words else value
    if "property" in words:
        return cx.call_function(cx, function, Arguments((first,)))

    def bound(cx: Context, *args: object, **named: object) -> object:
        return cx.call_function(cx, function, Arguments((first, *args), named))

    return Builtin(f"{of.name}.{function.name}", bound)


def takes_self(function: Function) -> bool:
    """Whether the first argument of a method is the object."""
    return _decorators(function).isdisjoint(("staticmethod", "classmethod"))


def _decorators(function: Function) -> frozenset[str]:
    nodes = function.node.decorators if isinstance(function.node, cst.FunctionDef) else ()
    return frozenset(each.decorator.value for each in nodes if isinstance(each.decorator, cst.Name))


def apply_autograd(cx: Context, of: Class, arguments: Arguments) -> object:
    """`Function.apply(...)`: the forward pass, and the backward pass with what it saved."""
    context = Instance("ctx", {"saved_tensors": ()})

    def save(cx: Context, *tensors: object) -> None:
        context.values["saved_tensors"] = tensors

    context.values["save_for_backward"] = Builtin("save_for_backward", save)
    result: object = Opaque(of.name)
    for name in ("forward", "backward"):
        method = of.values.get(name)
        if not isinstance(method, Function):
            continue
        params = [param.name.value for param in method.node.params.params]
        given = arguments.positional if name == "forward" else tuple(Opaque(param) for param in params[1:])
        found = cx.call_function(cx, method, Arguments((context, *given), arguments.named if name == "forward" else {}))
        result = found if name == "forward" else result
    return result
