"""The tracer: bodies of kernels and macros, whose run-time parts become statements of the program."""

import functools
from collections.abc import Sequence

import libcst as cst

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Const, Expr, Load, Role, Var, binary, int_const, static_value, walk
from tile2cu.core.program import Break, Continue, If, Loop, LoopKind, Parallel, Stmt, While
from tile2cu.core.span import Span
from tile2cu.frontend import execute, operators
from tile2cu.frontend.assignments import annotated, assign, augmented, let
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import apply, call_arguments, evaluate, is_flag
from tile2cu.frontend.execute import Return, statements, unsupported
from tile2cu.frontend.fault import Fault, counted
from tile2cu.frontend.lower import loop
from tile2cu.frontend.operators import truth
from tile2cu.frontend.parse import footer_comments, leading_comments, trailing_comment
from tile2cu.frontend.record import Place
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import (
    Allocation,
    Builtin,
    Function,
    KernelFrame,
    LoopFrame,
    Opaque,
    PipelineFrame,
    describe,
)


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
                assign(cx, target.target, value, env, cx.source.code(node.value))
        case cst.AnnAssign():
            annotated(cx, node, env)
        case cst.AugAssign():
            augmented(cx, node, env)
        case cst.Return():
            return Return(None if node.value is None else evaluate(cx, node.value, env))
        case cst.Assert():
            _trace_assert(cx, node, env)
        case cst.Pass() | cst.Import() | cst.ImportFrom():
            execute.run_small(cx, node, env, "")
        case cst.Break() | cst.Continue():
            _trace_jump(cx, node)
        case _:
            raise unsupported(node)
    return None


def _trace_jump(cx: Context, node: cst.Break | cst.Continue) -> None:
    word = "break" if isinstance(node, cst.Break) else "continue"
    if cx.recorder.parallel:
        raise Fault("T2C-F026", f"`{word}` cannot stand inside T.Parallel", help="put the rest into an `if`")
    if not cx.recorder.loops:
        raise Fault("T2C-F026", f"`{word}` stands outside of any loop of the kernel")
    at = cx.recorder.take()
    kind = Break if isinstance(node, cst.Break) else Continue
    cx.recorder.emit(kind(span=at.span, comments=at.comments, trailing=at.trailing))


def _trace_expression(cx: Context, node: cst.Expr, env: Env) -> None:
    """A call for its effect; a value that nobody uses is dropped, unless it was meant to allocate."""
    value = evaluate(cx, node.value, env)
    if isinstance(value, Allocation):
        raise Fault("T2C-F031", "this buffer has no name", help="write `name = T.alloc_...(...)`")


def _trace_assert(cx: Context, node: cst.Assert, env: Env) -> None:
    """An assertion on a run-time value is a check for people: it changes no result, and is not translated."""
    if cx.recorder.in_kernel:
        test = evaluate(cx, node.test, env)
        if isinstance(test, Expr) and static_value(test) is None and not is_flag(test):
            return
    execute.run_assert(cx, node, env)


def _trace_if(cx: Context, node: cst.If, env: Env) -> Return | None:
    """Static conditions choose a branch now; the others become a branch of the program."""
    condition = evaluate(cx, node.test, env)
    if isinstance(condition, Expr) and static_value(condition) is None and not is_flag(condition):
        if any(isinstance(part, Call) and part.function == "thread" for part in walk(condition)):
            condition = let(cx, "chosen", condition)
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
    if isinstance(condition, Expr) and static_value(condition) is None and not is_flag(condition):
        _trace_device_while(cx, node, condition, env)
        return
    if truth(condition, "the condition of this `while`"):
        raise Fault("T2C-F026", "this `while` never ends: its condition is true at transpile time")


def _trace_device_while(cx: Context, node: cst.While, condition: Expr, env: Env) -> None:
    cx.recorder.require_kernel("`while` on a run-time value")
    if node.orelse is not None:
        raise Fault("T2C-F012", "`else` of a loop is not supported in a kernel")
    at = cx.recorder.take()
    body = _loop_body(cx, node.body, env.inner_frame(loop=True))
    cx.recorder.emit(While(condition=condition, body=body, span=at.span, comments=at.comments, trailing=at.trailing))


def _loop_body(cx: Context, body: cst.BaseSuite, inner: Env) -> tuple[Stmt, ...]:
    """Trace the body of a loop of the program in a frame of its own."""
    cx.recorder.depth += 1
    cx.recorder.loops += 1
    with cx.recorder.block() as traced:
        _no_return(trace_body(cx, body, inner))
    cx.recorder.loops -= 1
    cx.recorder.depth -= 1
    inner.end_frame()
    return tuple(traced)


def _trace_for(cx: Context, node: cst.For, env: Env) -> None:
    """A loop of the program; `range` in a kernel's body is T.serial."""
    if node.orelse is not None:
        raise Fault("T2C-F012", "`else` of a loop is not supported in a kernel")
    frame = _loop_frame(cx, node.iter, env)
    names = _target_names(cx, node.target)
    if isinstance(frame, Expr):  # T.thread_binding: every thread has its own turn
        _trace_thread_loop(cx, node, frame, names[0], env)
        return
    at = cx.recorder.take()
    wanted = {loop.PERSISTENT: len(frame.bounds) - 2}.get(frame.kind, len(frame.bounds))
    wanted = wanted if frame.kind in (loop.PARALLEL, loop.GRID, loop.PERSISTENT) else 1
    if len(names) != wanted:
        raise _wrong_names(wanted, len(names))
    if frame.kind == loop.PERSISTENT:
        _trace_persistent(cx, node, frame, names, at, env)
    elif frame.kind == loop.GRID or (frame.kind == loop.PARALLEL and cx.recorder.parallel):
        _trace_nest(cx, node, frame.bounds, names, at, env)
    elif frame.kind == loop.PARALLEL:
        _trace_parallel(cx, node, frame, names, at, env)
    else:
        _trace_loop(cx, node, frame, names[0], at, env)


def _trace_thread_loop(cx: Context, node: cst.For, index: Expr, name: tuple[str, Span], env: Env) -> None:
    env.bind(name[0], let(cx, name[0], index), name[1])
    _no_return(trace_body(cx, node.body, env))


def _loop_frame(cx: Context, node: cst.BaseExpression, env: Env) -> LoopFrame | Expr:
    if isinstance(node, cst.Call):
        function = evaluate(cx, node.func, env)
        if isinstance(function, Builtin) and function.name == "range":
            arguments = call_arguments(cx, node, env)
            if not 1 <= len(arguments.positional) <= 3 or arguments.named:
                raise Fault("T2C-F017", "range() takes 1 to 3 arguments")
            frame = loop.serial(cx, *arguments.positional)
            assert isinstance(frame, LoopFrame)
            return frame
        value = apply(cx, function, call_arguments(cx, node, env), node)
        if isinstance(function, Builtin) and function.name == "T.thread_binding" and isinstance(value, Expr):
            return value
    else:
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
    kind, stages = LoopKind(frame.kind), frame.num_stages
    if kind is LoopKind.SERIAL and cx.recorder.pipelined:
        kind, stages = LoopKind.PIPELINED, cx.recorder.pipelined
    if kind is LoopKind.PIPELINED and cx.recorder.parallel:
        raise Fault("T2C-F026", "T.Pipelined cannot stand inside T.Parallel")
    inner = env.inner_frame(loop=True)
    outer, cx.recorder.pipelined = cx.recorder.pipelined, 0
    with cx.recorder.scope():
        var = cx.recorder.variable(name[0], INT32, Role.LOOP)
        inner.bind(name[0], var, name[1])
        body = _loop_body(cx, node.body, inner)
    cx.recorder.pipelined = outer
    start, stop, step = frame.bounds
    cx.recorder.emit(
        Loop(
            kind=kind,
            var=var,
            start=start,
            stop=stop,
            step=step,
            num_stages=stages,
            body=body,
            span=at.span,
            comments=at.comments,
            trailing=at.trailing,
        )
    )


def _wrong_names(wanted: int, given: int) -> Fault:
    return Fault("T2C-F026", f"this loop has {counted(wanted, 'extent')}, but {counted(given, 'name')}")


def _trace_nest(
    cx: Context, node: cst.For, extents: Sequence[Expr], names: Sequence[tuple[str, Span]], at: Place, env: Env
) -> None:
    """Serial loops inside each other: T.grid, and T.Parallel among other statements of a T.Parallel."""
    inner = env.inner_frame(loop=True)
    with cx.recorder.scope():
        indices = [cx.recorder.variable(name, INT32, Role.LOOP) for name, _ in names]
        for (name, span), var in zip(names, indices, strict=True):
            inner.bind(name, var, span)
        body = _loop_body(cx, node.body, inner)
    for at_dim in reversed(range(len(indices))):
        first = at_dim == 0
        body = (
            Loop(
                kind=LoopKind.SERIAL,
                var=indices[at_dim],
                start=int_const(0),
                stop=extents[at_dim],
                step=int_const(1),
                body=body,
                span=at.span,
                comments=at.comments if first else (),
                trailing=at.trailing if first else "",
            ),
        )
    cx.recorder.emit(body[0])


def _trace_persistent(
    cx: Context, node: cst.For, frame: LoopFrame, names: Sequence[tuple[str, Span]], at: Place, env: Env
) -> None:
    """`T.Persistent`: a loop over waves of tiles, and in it a branch for the tiles that there are."""
    *domain, wave_size, index = frame.bounds
    total = functools.reduce(lambda a, b: binary("*", a, b), domain)
    inner = env.inner_frame(loop=True)
    with cx.recorder.scope():
        wave = cx.recorder.variable("wave", INT32, Role.LOOP)
        cx.recorder.depth += 1
        with cx.recorder.block() as turn:
            cx.recorder.begin(at.span, (), "")
            tile = let(cx, "tile", binary("+", binary("*", wave, wave_size), index))
            with cx.recorder.block() as inside:
                rest: Expr = tile
                coordinates: list[Expr] = []
                for extent in reversed(domain[1:]):
                    coordinates.insert(0, binary("%", rest, extent))
                    rest = binary("//", rest, extent)
                for (name, span), value in zip(names, [rest, *coordinates], strict=True):
                    inner.bind(name, let(cx, name, value), span)
                _no_return(trace_body(cx, node.body, inner))
            cx.recorder.emit(If(condition=binary("<", tile, total), then=tuple(inside), span=at.span))
        cx.recorder.depth -= 1
    inner.end_frame()
    cx.recorder.emit(
        Loop(
            kind=LoopKind.SERIAL,
            var=wave,
            start=int_const(0),
            stop=Call(INT32, "ceildiv", (total, wave_size)),
            step=int_const(1),
            body=tuple(turn),
            span=at.span,
            comments=at.comments,
            trailing=at.trailing,
        )
    )


def _nested_parallel(cx: Context, node: cst.For, env: Env) -> tuple[cst.For, LoopFrame] | None:
    """The T.Parallel loop that is all that a T.Parallel loop has inside: the two are one."""
    body = statements(node.body)
    only = body[0] if len(body) == 1 else None
    if not isinstance(only, cst.For) or not isinstance(only.iter, cst.Call):
        return None
    function = evaluate(cx, only.iter.func, env)
    if not isinstance(function, Builtin) or function.name not in ("T.Parallel", "T.parallel"):
        return None
    frame = _loop_frame(cx, only.iter, env)
    return (only, frame) if isinstance(frame, LoopFrame) else None


def _trace_parallel(
    cx: Context, node: cst.For, frame: LoopFrame, names: Sequence[tuple[str, Span]], at: Place, env: Env
) -> None:
    inner = env.inner_frame(loop=True)
    cx.recorder.depth += 1
    cx.recorder.parallel += 1
    indices: list[Var] = []
    bounds = list(frame.bounds)
    with cx.recorder.block() as body:
        while True:
            for (name, span), extent in zip(names, bounds[len(indices) :], strict=True):
                indices.append(cx.recorder.variable(name, INT32, Role.PARALLEL))
                cx.recorder.ranges[indices[-1]] = extent
                inner.bind(name, indices[-1], span)
            within = _nested_parallel(cx, node, inner)
            if within is None:
                break
            node, nested = within
            names = _target_names(cx, node.target)
            if len(names) != len(nested.bounds):
                raise _wrong_names(len(nested.bounds), len(names))
            bounds += nested.bounds
        _no_return(trace_body(cx, node.body, inner))
    cx.recorder.parallel -= 1
    cx.recorder.depth -= 1
    inner.end_frame()
    cx.recorder.emit(
        Parallel(
            vars=tuple(indices),
            extents=tuple(bounds),
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
    if isinstance(frame, PipelineFrame):
        _trace_pipeline(cx, node, frame, env)
        return
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


def _trace_pipeline(cx: Context, node: cst.With, frame: PipelineFrame, env: Env) -> None:
    """`with T.pipeline():`: serial loops that stand directly inside are pipelined."""
    outer, cx.recorder.pipelined = cx.recorder.pipelined, frame.num_stages
    _no_return(trace_body(cx, node.body, env))
    cx.recorder.pipelined = outer


def call_macro(cx: Context, function: Function, values: dict[str, object]) -> object:
    """Inline a macro: its statements are traced here, its names are its own."""
    assert isinstance(function.node, cst.FunctionDef)
    env = Env(function.env)
    for param, value in values.items():
        changeable = isinstance(value, Var) and value.role is Role.MUTABLE
        computed = isinstance(value, Expr) and not isinstance(value, Var | Const | Load)
        if (changeable or computed) and cx.recorder.in_kernel:
            assert isinstance(value, Expr)
            value = let(cx, param, value)
        env.bind(param, value, cx.source.span(function.node.name))
    flow = trace_body(cx, function.node.body, env)
    return flow.value if flow is not None else None
