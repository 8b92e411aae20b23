"""Assignments in traced bodies: lets, mutable scalars, stores to buffers, allocations and constants."""

from collections.abc import Sequence

import libcst as cst

from tile2cu.core.dtype import DType
from tile2cu.core.expr import Address, Const, Expr, Load, Role, Var, walk
from tile2cu.core.program import Assign, Buffer, Declare, Store
from tile2cu.core.span import Span
from tile2cu.frontend import execute, operators
from tile2cu.frontend.assign import unpack
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate, operator_text, subscript_items
from tile2cu.frontend.execute import unsupported
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lets import let
from tile2cu.frontend.lower import elementwise, lanes, tiles
from tile2cu.frontend.placement import guarded
from tile2cu.frontend.scope import Env
from tile2cu.frontend.subscript import subscript
from tile2cu.frontend.values import (
    Allocation,
    Lanes,
    Opaque,
    OutputTensor,
    TensorType,
    TileValue,
    View,
    as_expr,
    describe,
)

_KEPT_OPERATORS = ("+", "-", "*", "/")  # an augmented assignment that the program keeps as such


def assign(cx: Context, target: cst.BaseExpression, value: object, env: Env, formula: str) -> None:
    """`target = value`; parts of a tuple are all evaluated before the first is assigned."""
    match target:
        case cst.Name(value=name):
            _assign_name(cx, name, value, env, cx.source.span(target), formula)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            targets = [element.value for element in elements]
            parts = _resolved(cx, unpack(cx, value, len(targets)), targets, env)
            parts = _saved(cx, parts, targets, env)
            for each, part in zip(targets, parts, strict=True):
                assign(cx, each, part, env, formula)
        case cst.Subscript():
            _store(cx, evaluate(cx, target.value, env), subscript_items(cx, target, env), value, "")
        case _:
            raise Fault("T2C-F012", f"`{cx.source.code(target)}` cannot be assigned to")


def _resolved(
    cx: Context, parts: Sequence[object], targets: Sequence[cst.BaseExpression], env: Env
) -> Sequence[object]:
    """The parts on the right of `a, b = b, a`: what an earlier target would change is read into a let first."""
    if not any(isinstance(target, cst.Subscript) or _is_mutable(target, env) for target in targets):
        return parts
    return [
        let(cx, "value", part) if at > 0 and isinstance(part, Expr) and any(map(_can_change, walk(part))) else part
        for at, part in enumerate(parts)
    ]


def _saved(cx: Context, parts: Sequence[object], targets: Sequence[cst.BaseExpression], env: Env) -> Sequence[object]:
    """The parts with expressions of tiles written, and tiles that an earlier target would change copied first."""
    names = [target.value if isinstance(target, cst.Name) else "" for target in targets]
    found = [owner.values[name] if (owner := env.find_quietly(name)) is not None else None for name in names]
    saved: list[object] = []
    for at, part in enumerate(parts):
        changed = isinstance(part, Buffer) and tiles.is_tile(part) and any(part is each for each in found[:at])
        late = isinstance(part, TileValue) and at > 0
        saved.append(tiles.written(cx, tiles.as_tile(cx, part), "value") if changed or late else part)
    return saved


def _is_mutable(target: cst.BaseExpression, env: Env) -> bool:
    owner = env.find_quietly(target.value) if isinstance(target, cst.Name) else None
    return owner is not None and isinstance(target, cst.Name) and _can_change(owner.values[target.value])


def _can_change(value: object) -> bool:
    """Whether a store or an assignment may change the value."""
    return isinstance(value, Load) or (isinstance(value, Var) and value.role is Role.MUTABLE)


def _assign_name(cx: Context, name: str, value: object, env: Env, span: Span, formula: str) -> None:
    owner = env.find_quietly(name)
    old = owner.values[name] if owner is not None else None
    if isinstance(old, Buffer | View) and _is_meant(cx, old, name, value, env):
        tiles.store(cx, old, value, "")
        return
    if isinstance(old, Var) and old.role is Role.MUTABLE and not isinstance(value, Allocation):
        _assign_mutable(cx, old, value, "")
        return
    _refuse_carried(name, value, env)
    if env.is_read_beside(name):
        cx.recorder.rebound.setdefault(span, name)
    env.bind(name, _bound(cx, name, value, env, span, formula), span)


def _is_meant(cx: Context, old: Buffer | View, name: str, value: object, env: Env) -> bool:
    """Whether `name = value` writes the tensor or tile that the name denotes."""
    if not _is_place(cx, old):
        return False
    return isinstance(value, TileValue) or (tiles.is_tile(old) and _is_carried_tile(name, value, env))


def _is_place(cx: Context, value: object) -> bool:
    """Whether a value is a tensor or tile, or a slice of one, that the kernel may write."""
    buffer = value.buffer if isinstance(value, View) else value
    return isinstance(buffer, Buffer) and cx.recorder.in_kernel and cx.recorder.owns(buffer)


def _is_carried_tile(name: str, value: object, env: Env) -> bool:
    """Whether `name = tile` in a loop is meant for the next iteration: the name denotes a tile from before the loop."""
    scope: Env | None = env
    while scope is not None and name not in scope.values and not scope.loop:
        scope = scope.parent
    return tiles.is_tile(value) and scope is not None and scope.loop and name not in scope.values


def _refuse_carried(name: str, value: object, env: Env) -> None:
    """A name that a loop has read, and now binds again, would not carry its value to the next iteration.

    A number that takes the name of a tensor or tile carries nothing: the loop is traced once, with the tensor.
    """
    carried = env.carried_by(name)
    scope = None if carried is None else env.find_quietly(name)
    taken = scope is not None and isinstance(scope.values[name], Buffer) and not isinstance(value, Buffer | View)
    if carried is not None and not taken:
        raise Fault(
            "T2C-F027",
            f"`{name}` is bound again inside a loop of the kernel, but names carry no values to the next iteration",
            help=f"declare it before the loop, `{name} = T.alloc_var(...)`, or give a value of one turn another name",
        )


def _bound(cx: Context, name: str, value: object, env: Env, span: Span, formula: str) -> object:
    """The value that a name denotes after `name = value`."""
    match value:
        case TileValue() | Lanes():
            return _computed(cx, name, value)
        case Allocation(scope=None):
            return _declare(cx, name, value.dtype, value.init)
        case Allocation():
            return cx.recorder.allocate(name, value)
        case OutputTensor():
            return _output(cx, name, value, span)
        case TensorType(data=Buffer()) | Buffer():
            return _view(cx, name, value, span)
        case Var(role=Role.MUTABLE):
            return let(cx, name, value)
        case Var() | Const() | Address():
            return value
        case Expr() if cx.recorder.in_kernel:
            return let(cx, name, value)
        case int() | float() | Expr() if env.declares:
            return cx.bind_static(name, value, span, formula=formula, comment=cx.recorder.trailing)
        case _:
            return value


def _computed(cx: Context, name: str, value: TileValue | Lanes) -> object:
    """A tile, or a vector whose elements are computed now, if they may be others later."""
    if isinstance(value, TileValue):
        return tiles.written(cx, value, name)
    if not any(_can_change(part) for each in value.parts for part in walk(each)):
        return value
    return lanes.kept(cx, name, value)


def _view(cx: Context, name: str, value: TensorType | Buffer, span: Span) -> Buffer:
    """A tensor or tile in another shape; one that has a name already keeps it."""
    if isinstance(value, Buffer):
        return cx.recorder.name_view(value, name)
    assert value.data is not None
    return cx.recorder.show(name, value.shape, value.data, span)


def _declare(cx: Context, name: str, dtype: DType, init: Expr | None) -> Var:
    """A mutable scalar of each thread."""
    cx.recorder.require_kernel(f"`{name}`")
    start = Const(dtype, 0) if init is None else init
    var = cx.recorder.variable(name, dtype, Role.MUTABLE)
    cx.recorder.emit(Declare(var=var, init=start, **cx.recorder.take().fields))
    return var


def _output(cx: Context, name: str, value: OutputTensor, span: Span) -> Buffer:
    """A tensor from T.empty: one more parameter, allocated by the caller."""
    buffer = TensorType(value.shape, value.dtype).named(name, span, "\n".join(cx.recorder.take().lines))
    cx.recorder.add_param(name, buffer)
    return buffer


def annotated(cx: Context, node: cst.AnnAssign, env: Env) -> None:
    """`A: T.Tensor(...)` binds an argument; `x: T.int32 = e` declares a mutable scalar."""
    annotation = evaluate(cx, node.annotation.annotation, env)
    value = None if node.value is None else evaluate(cx, node.value, env)
    if not isinstance(node.target, cst.Name):
        raise unsupported(node)
    name, span = node.target.value, cx.source.span(node.target)
    if isinstance(annotation, TensorType) and node.value is None:
        _bind_argument(cx, name, annotation, env, span)
    elif isinstance(annotation, DType) and node.value is None and name in cx.recorder.signature:
        env.bind(name, cx.recorder.add_param(name, Var(annotation, name, Role.SCALAR)), span)
    elif isinstance(annotation, DType) and node.value is not None:
        init = as_expr(value)
        if init is None:
            raise Fault("T2C-F023", f"`{name}` must be a number, not {describe(value)}")
        if not cx.recorder.in_kernel:  # of the host: nothing changes it
            value = value if init.dtype == annotation else elementwise.cast(cx, value, annotation)
            _assign_name(cx, name, value, env, span, cx.source.code(node.value))
            return
        _refuse_carried(name, init, env)
        env.bind(name, _declare(cx, name, annotation, init), span)
    elif node.value is not None:
        _assign_name(cx, name, value, env, span, cx.source.code(node.value))


def _bind_argument(cx: Context, name: str, tensor: TensorType, env: Env, span: Span) -> None:
    """`A: T.Tensor(...)` in the body of an eager kernel."""
    if name not in cx.recorder.signature:
        raise Fault("T2C-F029", f"`{name}` is no parameter of the kernel", help="only parameters are annotated so")
    buffer = tensor.named(name, span, "\n".join(cx.recorder.take().lines))
    cx.recorder.add_param(name, buffer)
    env.bind(name, buffer, span)


def augmented(cx: Context, node: cst.AugAssign, env: Env) -> None:
    """`target op= value`."""
    op = operator_text(node.operator)
    if isinstance(node.target, cst.Subscript):
        base = evaluate(cx, node.target.value, env)
        items = subscript_items(cx, node.target, env)
        _store(cx, base, items, evaluate(cx, node.value, env), op)
        return
    if not isinstance(node.target, cst.Name):
        raise Fault("T2C-F012", f"`{cx.source.code(node.target)}` cannot be assigned to")
    old, value = evaluate(cx, node.target, env), evaluate(cx, node.value, env)
    if isinstance(old, Buffer | View) and _is_place(cx, old):
        _store_all(cx, old, value, op)
        return
    if isinstance(old, Buffer | View):
        raise Fault("T2C-F031", f"{describe(old)} is not a number", help="write a T.Parallel loop over its elements")
    if isinstance(old, Var) and old.role is Role.MUTABLE:
        _assign_mutable(cx, old, value, op)
        return
    combined = operators.binary(cx.budget, op, old, value)
    _assign_name(cx, node.target.value, combined, env, cx.source.span(node.target), cx.source.code(node))


def _store(cx: Context, base: object, items: tuple[object, ...], value: object, op: str) -> None:
    """`base[items] op= value`."""
    if isinstance(base, Var) and base.role is Role.MUTABLE:
        subscript(cx, base, items)
        _assign_mutable(cx, base, value, op)
        return
    if not isinstance(base, Buffer):
        old = subscript(cx, base, items) if op else None
        execute.store_item(cx, base, items, operators.binary(cx.budget, op, old, value) if op else value)
        return
    cx.recorder.require_kernel(f"a store to `{base.name}`")
    element = subscript(cx, base, items)
    if isinstance(element, Lanes) or (isinstance(element, View) and isinstance(value, Lanes)):
        lanes.store_all(cx, element, value, op)
        return
    if isinstance(element, View):
        _store_all(cx, element, value, op)
        return
    if not isinstance(element, Load):
        raise Fault("T2C-F031", f"`{base.name}` with a new dimension cannot be assigned to", help="leave out the None")
    written = _scalar(value, f"an element of `{base.name}`")
    if op and op not in _KEPT_OPERATORS:
        combined = operators.binary(cx.budget, op, element, written)
        assert isinstance(combined, Expr)
        written, op = combined, ""
    elif op:
        operators.binary(cx.budget, op, element, written)  # for its checks
    store = Store(buffer=base, indices=element.indices, value=written, op=op, **cx.recorder.take().fields)
    cx.recorder.emit(guarded(element, store))


def _store_all(cx: Context, target: Buffer | View, value: object, op: str) -> None:
    """`target op= value`, for all elements."""
    if isinstance(value, Opaque):
        raise operators.unknown(value, "the value")
    if op and op not in _KEPT_OPERATORS:
        value, op = tiles.binary(cx, op, target, value), ""
    tiles.store(cx, target, value, op)


def _assign_mutable(cx: Context, var: Var, value: object, op: str) -> None:
    """`var op= value` for a scalar from T.alloc_var."""
    written = _scalar(value, f"`{var.name}`")
    if op and op not in _KEPT_OPERATORS:
        combined = operators.binary(cx.budget, op, var, written)
        assert isinstance(combined, Expr)
        written, op = combined, ""
    if written == var and not op:
        return  # `start = first if is_cut else start`, where nothing is cut
    cx.recorder.emit(Assign(var=var, value=written, op=op, **cx.recorder.take().fields))


def _scalar(value: object, what: str) -> Expr:
    if isinstance(value, Opaque):
        raise operators.unknown(value, what)
    written = as_expr(value)
    if written is None:
        raise Fault("T2C-F023", f"{what} takes a number, not {describe(value)}")
    return written
