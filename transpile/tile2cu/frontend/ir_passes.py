"""Passes over TVM's nodes that a file applies to its prim_func before it returns it.

`tirx.PrimFunc(body=ir_transform(main.body, None, visit), ...)` is followed where `visit` is about calls of C++
functions alone, as one that takes markers out: it is evaluated on each such call when the kernel is traced. A pass that
asks for other nodes is rejected, since only TVM has them.
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec.structs import replace

from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.values import Arguments, Body, Builtin, Function, FunctionKind, Node, NodeKind, Opaque, describe

_WAY_OUT = "return the T.prim_func as it is written: only running the pass shows what it makes of it"
_UNKNOWN = (Node("another"), Node("Evaluate", MappingProxyType({"value": Node("another")})))


def of_prim_func(function: Function, name: str) -> object:
    """`main.body` and what else a prim_func has in TVM; None where `name` is none of it."""
    if function.kind is not FunctionKind.PRIM_FUNC:
        return None
    names = [param.name.value for param in function.node.params.params]
    found: Mapping[str, object] = {
        "body": Body(function),
        "params": tuple(names),
        "buffer_map": {each: Opaque(each) for each in names},
        "ret_type": Opaque(name),
        "attrs": Opaque(name),
    }
    return found.get(name)


def of_node(node: Node, name: str) -> object:
    """A field of a node."""
    if name in node.fields:
        return node.fields[name]
    raise Fault("T2C-F011", f"`{name}` of a node of TVM's is not supported yet", help=_WAY_OUT)


def make(cx: Context, kind: NodeKind, arguments: Arguments) -> object:
    """`tirx.Evaluate(value)` and so on."""
    names = _FIELDS[kind.name]
    fields = dict(zip(names, arguments.positional, strict=False)) | dict(arguments.named)
    if kind.name == "PrimFunc":
        return _prim_func(fields)
    return Node(kind.name, fields)


def _prim_func(fields: Mapping[str, object]) -> Function:
    body = fields.get("body")
    if not isinstance(body, Body):
        raise Fault("T2C-F011", f"a PrimFunc of {describe(body)} is not supported yet", help=_WAY_OUT)
    listed = (fields.get("params"), fields.get("buffer_map"))
    names = of_prim_func(body.of, "params")
    if any(not isinstance(each, tuple | list | dict) or tuple(each) != names for each in listed):
        raise Fault("T2C-F011", "a PrimFunc with other parameters is not supported yet", help=_WAY_OUT)
    return body.of


def _transform(cx: Context, body: object, preorder: object, postorder: object, only: object = None) -> object:
    """`ir_transform(body, preorder, postorder)`. A function that changes what is no call is rejected."""
    if not isinstance(body, Body) or preorder is not None or not isinstance(postorder, Function):
        message = "ir_transform is only supported of a prim_func's body, by a `postorder` function of the file"
        raise Fault("T2C-F011", message, help=_WAY_OUT)
    for node in _UNKNOWN:
        if cx.call_function(cx, postorder, Arguments((node,))) is not node:
            raise Fault("T2C-F011", f"{postorder.name}() changes more than calls of C++ functions", help=_WAY_OUT)
    return Body(replace(body.of, passes=(*body.of.passes, postorder)))


def _visit(cx: Context, *arguments: object) -> None:
    raise Fault("T2C-F011", "post_order_visit is not supported yet", help=_WAY_OUT)


def removes(cx: Context, name: str, arguments: tuple[object, ...]) -> bool:
    """Whether a pass of the file takes out a call of this C++ function. Raises Fault where one makes another of it."""
    for visit in cx.recorder.passes:
        call = Node("Call", {"args": (Node("StringImm", {"value": name}), *arguments)})
        node = Node("Evaluate", {"value": call})
        made = cx.call_function(cx, visit, Arguments((node,)))
        if made is node:
            continue
        value = made.fields.get("value") if isinstance(made, Node) and made.kind == "Evaluate" else None
        if not isinstance(value, int) and not (isinstance(value, Node) and value.kind == "IntImm"):
            raise Fault("T2C-F011", f"{visit.name}() makes {describe(made)} of a call of `{name}`", help=_WAY_OUT)
        return True
    return False


_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "PrimFunc": ("params", "body", "ret_type", "buffer_map", "attrs"),
        "Evaluate": ("value",),
        "Call": ("dtype", "op", "args"),
        "StringImm": ("value",),
        "IntImm": ("dtype", "value"),
    }
)
KINDS: Mapping[str, object] = MappingProxyType({name: NodeKind(name) for name in _FIELDS})
FUNCTORS: Mapping[str, object] = MappingProxyType(
    {"ir_transform": Builtin("ir_transform", _transform), "post_order_visit": Builtin("post_order_visit", _visit)}
)
