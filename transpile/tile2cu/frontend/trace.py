"""The tracer: bodies of kernels and macros, whose run-time parts become statements of the program."""

from collections.abc import Sequence

import libcst as cst

from tile2cu.core.dtype import INT32, DType
from tile2cu.core.expr import Const, Expr, Load, Role, Var, static_value
from tile2cu.core.program import (
    Assign,
    Buffer,
    Declare,
    If,
    Let,
    Loop,
    LoopKind,
    Parallel,
    Scope,
    Store,
)
from tile2cu.core.span import Span
from tile2cu.frontend import execute, operators
from tile2cu.frontend.assign import unpack
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import call_arguments, evaluate, is_flag, operator_text, subscript_items
from tile2cu.frontend.execute import Return, statements, unsupported
from tile2cu.frontend.fault import Fault, counted
from tile2cu.frontend.lower import loop
from tile2cu.frontend.operators import truth
from tile2cu.frontend.parse import footer_comments, leading_comments, trailing_comment
from tile2cu.frontend.record import Place
from tile2cu.frontend.scope import Env
from tile2cu.frontend.subscript import subscript
from tile2cu.frontend.values import (
    Allocation,
    Builtin,
    Function,
    KernelFrame,
    LoopFrame,
    Opaque,
    OutputTensor,
    TensorType,
    View,
    as_expr,
    describe,
)

_KEPT_OPERATORS = ("+", "-", "*", "/")  # an augmented assignment that the program keeps as such


def trace_body(cx: Context, body: cst.BaseSuite, env: Env) -> Return | None:
    """Trace the statements of a block; comments after its last statement wait for the next one."""
    for node in statements(body):
        flow = trace_statement(cx, node, env)
        if flow is not None:
            return flow
    cx.recorder.note(footer_comments(body))
    return None


def trace_statement(cx: Context, node: cst.CSTNode, env: Env) -> Return | None:
    """Trace one statement."""
    try:
        cx.budget.step()
        cx.recorder.begin(header_span(cx, node), leading_comments(node), trailing_comment(node))
        match node:
            case cst.SimpleStatementLine():
                flows = (_trace_small(cx, small, env) for small in node.body)
                return next((flow for flow in flows if flow is not None), None)
            case cst.BaseSmallStatement():
                return _trace_small(cx, node, env)
            case cst.If():
                return _trace_if(cx, node, env)
            case _:
                _trace_compound(cx, node, env)
                return None
    except Fault as fault:
        raise fault.at(header_span(cx, node)) from None


def _trace_compound(cx: Context, node: cst.CSTNode, env: Env) -> None:
    match node:
        case cst.For():
            _trace_for(cx, node, env)
        case cst.With():
            _trace_with(cx, node, env)
        case cst.FunctionDef():
            execute.define(cx, node, env)
        case cst.While():
            _trace_while(cx, node, env)
        case _:
            raise unsupported(node)


def header_span(cx: Context, node: cst.CSTNode) -> Span:
    """The place of a statement's first line, without the comment at its end."""
    span = cx.source.span(node)
    if isinstance(node, cst.BaseCompoundStatement) and trailing_comment(node):
        end = len(span.text[: span.text.rfind("#")].rstrip()) + 1
        return Span(span.file, span.line, span.column, max(end, span.column + 1), span.text)
    return span


def _trace_small(cx: Context, node: cst.BaseSmallStatement, env: Env) -> Return | None:
    match node:
        case cst.Expr():
            _trace_expression(cx, node, env)
        case cst.Assign():
            value = evaluate(cx, node.value, env)
            for target in node.targets:
                _assign(cx, target.target, value, env, cx.source.code(node.value))
        case cst.AnnAssign():
            _annotated(cx, node, env)
        case cst.AugAssign():
            _augmented(cx, node, env)
        case cst.Return():
            return Return(None if node.value is None else evaluate(cx, node.value, env))
        case cst.Assert():
            _trace_assert(cx, node, env)
        case cst.Pass() | cst.Import() | cst.ImportFrom():
            execute.run_small(cx, node, env, "")
        case cst.Break() | cst.Continue():
            word = "break" if isinstance(node, cst.Break) else "continue"
            raise Fault("T2C-F012", f"`{word}` is not supported in a kernel", help="put the rest into an `if`")
        case _:
            raise unsupported(node)
    return None


def _trace_expression(cx: Context, node: cst.Expr, env: Env) -> None:
    """A call for its effect; a value that nobody uses is dropped, unless it was meant to allocate."""
    value = evaluate(cx, node.value, env)
    if isinstance(value, Allocation):
        raise Fault("T2C-F031", "this buffer has no name", help="write `name = T.alloc_...(...)`")


def _trace_assert(cx: Context, node: cst.Assert, env: Env) -> None:
    test = evaluate(cx, node.test, env)
    if isinstance(test, Expr) and static_value(test) is None and not is_flag(test):
        raise Fault(
            "T2C-F012", "`assert` on a run-time value is not supported in a kernel", help="check it where it is called"
        )
    execute.run_assert(cx, node, env)


def _assign(cx: Context, target: cst.BaseExpression, value: object, env: Env, formula: str) -> None:
    """`target = value`; parts of a tuple are all evaluated before the first is assigned."""
    match target:
        case cst.Name(value=name):
            _assign_name(cx, name, value, env, cx.source.span(target), formula)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            parts = [
                _settled(cx, part, element.value)
                for part, element in zip(unpack(cx, value, len(elements)), elements, strict=True)
            ]
            for element, part in zip(elements, parts, strict=True):
                _assign(cx, element.value, part, env, formula)
        case cst.Subscript():
            _store(cx, evaluate(cx, target.value, env), subscript_items(cx, target, env), value, "")
        case _:
            raise Fault("T2C-F012", f"`{cx.source.code(target)}` cannot be assigned to")


def _settled(cx: Context, value: object, target: cst.BaseExpression) -> object:
    """A part of a tuple on the right: what later assignments could change is read into a let first."""
    changeable = isinstance(value, Load) or (isinstance(value, Var) and value.role is Role.MUTABLE)
    if changeable and not isinstance(target, cst.Name):
        assert isinstance(value, Expr)
        return _let(cx, "value", value)
    return value


def _assign_name(cx: Context, name: str, value: object, env: Env, span: Span, formula: str) -> None:
    owner = env.find_quietly(name)
    old = owner.values[name] if owner is not None else None
    if isinstance(old, Var) and old.role is Role.MUTABLE and not isinstance(value, Allocation):
        _assign_mutable(cx, old, value, "")
        return
    _refuse_carried(name, env)
    env.bind(name, _bound(cx, name, value, env, span, formula), span)


def _refuse_carried(name: str, env: Env) -> None:
    """A name that a loop has read, and now binds again, would not carry its value to the next turn."""
    if env.carried_by(name) is not None:
        raise Fault(
            "T2C-F027",
            f"`{name}` is bound again inside a loop of the kernel, but names do not carry values from turn to turn",
            help=f"declare it before the loop: `{name} = T.alloc_var(...)`",
        )


def _bound(cx: Context, name: str, value: object, env: Env, span: Span, formula: str) -> object:
    """The value that a name stands for after `name = value`."""
    match value:
        case Allocation(scope=None):
            return _declare(cx, name, value.dtype, value.init)
        case Allocation(scope=Scope() as scope):
            return cx.recorder.allocate(name, value.shape, value.dtype, scope)
        case OutputTensor():
            return _output(cx, name, value, span)
        case Var(role=Role.MUTABLE):
            return _let(cx, name, value)
        case Var() | Const():
            return value
        case Expr() if cx.recorder.in_kernel:
            return _let(cx, name, value)
        case int() | float() if env.declares:
            return cx.bind_static(name, value, span, formula=formula, comment=cx.recorder.trailing)
        case _:
            return value


def _let(cx: Context, name: str, value: Expr) -> Var:
    """An immutable value of the program."""
    var = cx.recorder.variable(name, value.dtype, Role.LET)
    at = cx.recorder.take()
    cx.recorder.emit(Let(var=var, value=value, span=at.span, comments=at.comments, trailing=at.trailing))
    return var


def _declare(cx: Context, name: str, dtype: DType, init: Expr | None) -> Var:
    """A mutable scalar of each thread."""
    cx.recorder.require_kernel(f"`{name}`")
    var = cx.recorder.variable(name, dtype, Role.MUTABLE)
    at = cx.recorder.take()
    cx.recorder.emit(Declare(var=var, init=init, span=at.span, comments=at.comments, trailing=at.trailing))
    return var


def _output(cx: Context, name: str, value: OutputTensor, span: Span) -> Buffer:
    """A tensor from T.empty: one more parameter, allocated by the caller."""
    at = cx.recorder.take()
    comment = "\n".join(at.comments + ((at.trailing,) if at.trailing else ()))
    buffer = Buffer(name=name, shape=value.shape, dtype=value.dtype, scope=Scope.GLOBAL, span=span, comment=comment)
    cx.recorder.add_param(name, buffer)
    return buffer


def _annotated(cx: Context, node: cst.AnnAssign, env: Env) -> None:
    """`A: T.Tensor(...)` binds an argument; `x: T.int32 = e` declares a mutable scalar."""
    annotation = evaluate(cx, node.annotation.annotation, env)
    value = None if node.value is None else evaluate(cx, node.value, env)
    if not isinstance(node.target, cst.Name):
        raise unsupported(node)
    name, span = node.target.value, cx.source.span(node.target)
    if isinstance(annotation, TensorType) and node.value is None:
        _bind_argument(cx, name, annotation, env, span)
    elif isinstance(annotation, DType) and node.value is not None:
        init = as_expr(value)
        if init is None:
            raise Fault("T2C-F023", f"`{name}` must be a number, not {describe(value)}")
        _refuse_carried(name, env)
        env.bind(name, _declare(cx, name, annotation, init), span)
    elif node.value is not None:
        _assign_name(cx, name, value, env, span, cx.source.code(node.value))


def _bind_argument(cx: Context, name: str, tensor: TensorType, env: Env, span: Span) -> None:
    """`A: T.Tensor(...)` in the body of an eager kernel."""
    if name not in cx.recorder.signature:
        raise Fault("T2C-F029", f"`{name}` is no parameter of the kernel", help="only parameters are annotated so")
    at = cx.recorder.take()
    comment = "\n".join(at.comments + ((at.trailing,) if at.trailing else ()))
    buffer = Buffer(
        name=name,
        shape=tensor.shape,
        dtype=tensor.dtype,
        scope=Scope.GLOBAL,
        span=span,
        comment=comment,
        strides=tensor.strides,
    )
    cx.recorder.add_param(name, buffer)
    env.bind(name, buffer, span)


def _augmented(cx: Context, node: cst.AugAssign, env: Env) -> None:
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
    if not isinstance(element, Load):
        raise Fault("T2C-F031", f"a slice of `{base.name}` cannot be assigned to", help="write T.copy or T.fill")
    written = _scalar(value, f"an element of `{base.name}`")
    if op and op not in _KEPT_OPERATORS:
        combined = operators.binary(cx.budget, op, element, written)
        assert isinstance(combined, Expr)
        written, op = combined, ""
    elif op:
        operators.binary(cx.budget, op, element, written)  # for its checks
    at = cx.recorder.take()
    cx.recorder.emit(
        Store(
            buffer=base,
            indices=element.indices,
            value=written,
            op=op,
            span=at.span,
            comments=at.comments,
            trailing=at.trailing,
        )
    )


def _assign_mutable(cx: Context, var: Var, value: object, op: str) -> None:
    """`var op= value` for a scalar from T.alloc_var."""
    written = _scalar(value, f"`{var.name}`")
    if op and op not in _KEPT_OPERATORS:
        combined = operators.binary(cx.budget, op, var, written)
        assert isinstance(combined, Expr)
        written, op = combined, ""
    at = cx.recorder.take()
    cx.recorder.emit(Assign(var=var, value=written, op=op, span=at.span, comments=at.comments, trailing=at.trailing))


def _scalar(value: object, what: str) -> Expr:
    if isinstance(value, Opaque):
        raise operators.unknown(value, what)
    written = as_expr(value)
    if written is None:
        raise Fault("T2C-F023", f"{what} takes a number, not {describe(value)}")
    return written


def _trace_if(cx: Context, node: cst.If, env: Env) -> Return | None:
    """Static conditions choose a branch now; the others become a branch of the program."""
    condition = evaluate(cx, node.test, env)
    if isinstance(condition, Expr) and static_value(condition) is None and not is_flag(condition):
        _trace_device_if(cx, node, condition, env)
        return None
    if truth(condition, "the condition of this `if`"):
        return trace_body(cx, node.body, env)
    match node.orelse:
        case cst.If() as chained:
            return trace_statement(cx, chained, env)
        case cst.Else(body=body):
            return trace_body(cx, body, env)
        case _:
            return None


def _trace_device_if(cx: Context, node: cst.If, condition: Expr, env: Env) -> None:
    cx.recorder.require_kernel("`if` on a run-time value")
    at = cx.recorder.take()
    then_env, else_env = env.inner_frame(loop=False), env.inner_frame(loop=False)
    cx.recorder.depth += 1
    with cx.recorder.block() as then:
        _no_return(trace_body(cx, node.body, then_env))
    with cx.recorder.block() as orelse:
        match node.orelse:
            case cst.If() as chained:
                _no_return(trace_statement(cx, chained, else_env))
            case cst.Else(body=body):
                _no_return(trace_body(cx, body, else_env))
            case _:
                pass
    cx.recorder.depth -= 1
    then_env.end_frame()
    else_env.end_frame()
    cx.recorder.emit(
        If(
            condition=condition,
            then=tuple(then),
            orelse=tuple(orelse),
            span=at.span,
            comments=at.comments,
            trailing=at.trailing,
        )
    )


def _no_return(flow: Return | None) -> None:
    if flow is not None:
        raise Fault("T2C-F031", "`return` stands inside T.Kernel, a loop or a branch")


def _trace_while(cx: Context, node: cst.While, env: Env) -> None:
    condition = evaluate(cx, node.test, env)
    if isinstance(condition, Expr) and static_value(condition) is None:
        raise Fault("T2C-F011", "`while` on a run-time value is not supported yet", help="write a T.serial loop")
    if truth(condition, "the condition of this `while`"):
        raise Fault("T2C-F026", "this `while` never ends: its condition is true at transpile time")


def _trace_for(cx: Context, node: cst.For, env: Env) -> None:
    """A loop of the program; `range` in a kernel's body is T.serial."""
    if node.orelse is not None:
        raise Fault("T2C-F012", "`else` of a loop is not supported in a kernel")
    frame = _loop_frame(cx, node.iter, env)
    at = cx.recorder.take()
    names = _target_names(cx, node.target)
    wanted = len(frame.bounds) if frame.kind == loop.PARALLEL else 1
    if len(names) != wanted:
        raise Fault("T2C-F026", f"this loop has {counted(wanted, 'extent')}, but {counted(len(names), 'name')}")
    if frame.kind == loop.PARALLEL:
        _trace_parallel(cx, node, frame, names, at, env)
    else:
        _trace_loop(cx, node, frame, names[0], at, env)


def _loop_frame(cx: Context, node: cst.BaseExpression, env: Env) -> LoopFrame:
    if isinstance(node, cst.Call):
        function = evaluate(cx, node.func, env)
        if isinstance(function, Builtin) and function.name == "range":
            arguments = call_arguments(cx, node, env)
            if not 1 <= len(arguments.positional) <= 3 or arguments.named:
                raise Fault("T2C-F017", "range() takes 1 to 3 arguments")
            frame = loop.serial(cx, *arguments.positional)
            assert isinstance(frame, LoopFrame)
            return frame
    value = evaluate(cx, node, env)
    if isinstance(value, LoopFrame):
        return value
    if isinstance(value, Opaque):
        raise operators.unknown(value, "this loop")
    raise Fault(
        "T2C-F026",
        f"a loop of a kernel cannot go through {describe(value)}",
        help="use range, T.serial, T.unroll, T.Pipelined or T.Parallel; loops over Python values belong in a helper",
    )


def _target_names(cx: Context, target: cst.BaseExpression) -> list[tuple[str, Span]]:
    match target:
        case cst.Name(value=name):
            return [(name, cx.source.span(target))]
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [found for element in elements for found in _target_names(cx, element.value)]
        case _:
            raise Fault("T2C-F012", f"`{cx.source.code(target)}` cannot be a loop's index")


def _trace_loop(cx: Context, node: cst.For, frame: LoopFrame, name: tuple[str, Span], at: Place, env: Env) -> None:
    kind = LoopKind(frame.kind)
    if kind is LoopKind.PIPELINED and cx.recorder.parallel:
        raise Fault("T2C-F026", "T.Pipelined cannot stand inside T.Parallel")
    inner = env.inner_frame(loop=True)
    cx.recorder.depth += 1
    with cx.recorder.block() as body:
        var = cx.recorder.variable(name[0], INT32, Role.LOOP)
        inner.bind(name[0], var, name[1])
        _no_return(trace_body(cx, node.body, inner))
    cx.recorder.depth -= 1
    inner.end_frame()
    start, stop, step = frame.bounds
    cx.recorder.emit(
        Loop(
            kind=kind,
            var=var,
            start=start,
            stop=stop,
            step=step,
            num_stages=frame.num_stages,
            body=tuple(body),
            span=at.span,
            comments=at.comments,
            trailing=at.trailing,
        )
    )


def _trace_parallel(
    cx: Context, node: cst.For, frame: LoopFrame, names: Sequence[tuple[str, Span]], at: Place, env: Env
) -> None:
    if cx.recorder.parallel:
        raise Fault("T2C-F026", "T.Parallel stands inside T.Parallel", help="write one loop: T.Parallel(M, N)")
    inner = env.inner_frame(loop=True)
    cx.recorder.depth += 1
    cx.recorder.parallel += 1
    with cx.recorder.block() as body:
        indices = tuple(cx.recorder.variable(name, INT32, Role.PARALLEL) for name, _ in names)
        for (name, span), var in zip(names, indices, strict=True):
            inner.bind(name, var, span)
        _no_return(trace_body(cx, node.body, inner))
    cx.recorder.parallel -= 1
    cx.recorder.depth -= 1
    inner.end_frame()
    cx.recorder.emit(
        Parallel(
            vars=indices,
            extents=frame.bounds,
            body=tuple(body),
            span=at.span,
            comments=at.comments,
            trailing=at.trailing,
        )
    )


_BLOCK_NAMES = ("bx", "by", "bz")


def _trace_with(cx: Context, node: cst.With, env: Env) -> None:
    """`with T.Kernel(...) as (bx, by):`."""
    if len(node.items) != 1:
        raise Fault("T2C-F012", "`with` of several items is not supported in a kernel")
    item = node.items[0]
    frame = evaluate(cx, item.item, env)
    if not isinstance(frame, KernelFrame):
        raise Fault("T2C-F012", f"`with` of {describe(frame)} is not supported in a kernel")
    targets = [] if item.asname is None else _target_names(cx, item.asname.name)
    single = item.asname is not None and isinstance(item.asname.name, cst.Name)
    if targets and len(targets) != len(frame.grid) and not single:
        raise Fault(
            "T2C-F025", f"T.Kernel has {counted(len(frame.grid), 'grid extent')}, but {counted(len(targets), 'name')}"
        )
    spread = single and len(frame.grid) > 1
    names = [name for name, _ in targets] if targets and not spread else list(_BLOCK_NAMES[: len(frame.grid)])
    inner = env.inner_frame(loop=False)
    with cx.recorder.launch(frame.grid, names, frame.threads) as blocks:
        if spread:
            inner.bind(targets[0][0], blocks, targets[0][1])
        for (name, span), var in zip([] if spread else targets, blocks, strict=False):
            inner.bind(name, var, span)
        _no_return(trace_body(cx, node.body, inner))
    inner.end_frame()


def call_macro(cx: Context, function: Function, values: dict[str, object]) -> object:
    """Inline a macro: its statements are traced here, its names are its own."""
    assert isinstance(function.node, cst.FunctionDef)
    env = Env(function.env)
    for param, value in values.items():
        changeable = isinstance(value, Var) and value.role is Role.MUTABLE
        computed = isinstance(value, Expr) and not isinstance(value, Var | Const | Load)
        if (changeable or computed) and cx.recorder.in_kernel:
            assert isinstance(value, Expr)
            value = _let(cx, param, value)
        env.bind(param, value, cx.source.span(function.node.name))
    flow = trace_body(cx, function.node.body, env)
    return flow.value if flow is not None else None
