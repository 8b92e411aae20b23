"""The tracer's loops: T.serial and its kin, T.Parallel, T.grid, T.Persistent and loops over threads."""

import functools
from collections.abc import Sequence

import libcst as cst

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Call, Expr, Role, Var, binary, int_const, static_value
from tile2cu.core.program import If, Loop, LoopKind, Parallel, Stmt
from tile2cu.core.span import Span
from tile2cu.frontend import builtins, operators
from tile2cu.frontend.assign import bind_target
from tile2cu.frontend.collisions import combining
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import apply, call_arguments, evaluate
from tile2cu.frontend.execute import statements
from tile2cu.frontend.fault import Fault, counted
from tile2cu.frontend.lets import let
from tile2cu.frontend.lower import loop, open_loop
from tile2cu.frontend.record import Place
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Builtin, LoopFrame, Opaque, describe


def loop_body(cx: Context, body: cst.BaseSuite, inner: Env) -> tuple[Stmt, ...]:
    """Trace the body of a loop of the program in a frame of its own."""
    cx.recorder.depth += 1
    cx.recorder.loops += 1
    with cx.recorder.block() as traced:
        cx.trace_block(cx, body, inner)
    cx.recorder.loops -= 1
    cx.recorder.depth -= 1
    inner.end_frame()
    return tuple(traced)


def trace_for(cx: Context, node: cst.For, env: Env) -> None:
    """A loop of the program; `range` in a kernel's body is T.serial."""
    if node.orelse is not None:
        raise Fault("T2C-F012", "`else` of a loop is not supported in a kernel")
    if not cx.recorder.in_kernel:
        _trace_turns(cx, node, env)
        return
    frame = _loop_frame(cx, node.iter, env)
    names = target_names(cx, node.target)
    if isinstance(frame, Expr):  # T.thread_binding: every thread has its own iteration
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
    elif frame.kind == loop.PARALLEL and open_loop.is_open(frame.bounds):
        _trace_open_parallel(cx, node, frame.bounds, names, at, env)
    elif frame.kind == loop.PARALLEL:
        _trace_parallel(cx, node, frame, names, at, env)
    else:
        _trace_loop(cx, node, frame, names[0], at, env)


def _trace_turns(cx: Context, node: cst.For, env: Env) -> None:
    """A loop around kernels, `for stage in range(3):`, whose iterations are launches of their own."""
    for value in builtins.items(cx, evaluate(cx, node.iter, env)):
        bind_target(cx, node.target, value, env)
        cx.trace_block(cx, node.body, env)


def _trace_thread_loop(cx: Context, node: cst.For, index: Expr, name: tuple[str, Span], env: Env) -> None:
    env.bind(name[0], let(cx, name[0], index), name[1])
    cx.trace_block(cx, node.body, env)


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


def target_names(cx: Context, target: cst.BaseExpression) -> list[tuple[str, Span]]:
    match target:
        case cst.Name(value=name):
            return [(name, cx.source.span(target))]
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [found for element in elements for found in target_names(cx, element.value)]
        case _:
            raise Fault("T2C-F012", f"`{cx.source.code(target)}` cannot be a loop's index")


def _trace_loop(cx: Context, node: cst.For, frame: LoopFrame, name: tuple[str, Span], at: Place, env: Env) -> None:
    kind, stages = LoopKind(frame.kind), frame.num_stages
    if kind is LoopKind.SERIAL and cx.recorder.pipelined:
        kind, stages = LoopKind.PIPELINED, cx.recorder.pipelined
    if kind is LoopKind.PIPELINED and cx.recorder.parallel:
        raise Fault("T2C-F026", "T.Pipelined cannot be inside T.Parallel")
    inner = env.inner_frame(loop=True)
    outer, cx.recorder.pipelined = cx.recorder.pipelined, 0
    with cx.recorder.scope():
        var = cx.recorder.variable(name[0], INT32, Role.LOOP)
        inner.bind(name[0], var, name[1])
        body = loop_body(cx, node.body, inner)
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
            stages_of=frame.stages_of,
            body=body,
            **at.fields,
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
        body = loop_body(cx, node.body, inner)
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


def _trace_open_parallel(
    cx: Context, node: cst.For, extents: Sequence[Expr], names: Sequence[tuple[str, Span]], at: Place, env: Env
) -> None:
    inner = env.inner_frame(loop=True)

    def body(indices: Sequence[Var]) -> None:
        for (name, span), index in zip(names, indices, strict=True):
            inner.bind(name, index, span)
        cx.trace_block(cx, node.body, inner)

    open_loop.over(cx, extents, [name for name, _ in names], at, body)
    inner.end_frame()


def _place_of(cx: Context, tile: Expr, domain: Sequence[Expr], panel: Expr) -> list[Expr]:
    """The coordinates of a tile: `panel` places along the last dimension go through all of the others together.

    Blocks that run at the same time then share operands along both.
    """
    *others, last = domain
    wide, extent = static_value(panel), static_value(last)
    if wide is None:
        at_most = Call(INT32, "min", (panel, last))
        panel = let(cx, "panel", Call(INT32, "max", (int_const(1), at_most)))
    elif not others or wide <= 1 or (extent is not None and extent <= wide):
        return _row_by_row(tile, domain)
    of_panel = functools.reduce(lambda a, b: binary("*", a, b), others, panel)
    start = let(cx, "panel_start", binary("*", binary("//", tile, of_panel), panel))
    rows = let(cx, "panel_rows", Call(INT32, "min", (panel, binary("-", last, start))))
    place = let(cx, "place_in_panel", binary("%", tile, of_panel))
    return [*_row_by_row(binary("//", place, rows), others), binary("+", start, binary("%", place, rows))]


def _row_by_row(tile: Expr, domain: Sequence[Expr]) -> list[Expr]:
    """The coordinates of a tile where the last dimension's run fastest; none where there is no dimension."""
    if not domain:
        return []
    coordinates: list[Expr] = []
    for extent in reversed(domain[1:]):
        coordinates.insert(0, binary("%", tile, extent))
        tile = binary("//", tile, extent)
    return [tile, *coordinates]


def _trace_persistent(
    cx: Context, node: cst.For, frame: LoopFrame, names: Sequence[tuple[str, Span]], at: Place, env: Env
) -> None:
    """`T.Persistent`: a loop over waves of tiles, and in it a branch for the tiles that there are."""
    *domain, wave_size, index = frame.bounds
    if len(domain) > 1:
        named = zip(names, domain, strict=True)
        domain = [part if static_value(part) is not None else let(cx, f"{name}_end", part) for (name, _), part in named]
    total = functools.reduce(lambda a, b: binary("*", a, b), domain)
    inner = env.inner_frame(loop=True)
    with cx.recorder.scope():
        wave = cx.recorder.variable("wave", INT32, Role.LOOP)
        cx.recorder.depth += 1
        with cx.recorder.block() as turn:
            cx.recorder.begin(at.span, (), "")
            tile = let(cx, "tile", binary("+", binary("*", wave, wave_size), index))
            with cx.recorder.block() as inside:
                for (name, span), value in zip(names, _place_of(cx, tile, domain, frame.panel), strict=True):
                    inner.bind(name, let(cx, name, value), span)
                cx.trace_block(cx, node.body, inner)
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
            **at.fields,
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
            names = target_names(cx, node.target)
            if len(names) != len(nested.bounds):
                raise _wrong_names(len(nested.bounds), len(names))
            bounds += nested.bounds
        cx.trace_block(cx, node.body, inner)
    cx.recorder.parallel -= 1
    cx.recorder.depth -= 1
    inner.end_frame()
    none = any((static_value(extent) or 0) <= 0 for extent in bounds if static_value(extent) is not None)
    if none or not body:  # no iterations; or `pass`, or statements that only Python evaluates
        return
    cx.recorder.emit(
        Parallel(
            vars=tuple(indices),
            extents=tuple(bounds),
            body=combining(tuple(body), dict(zip(indices, bounds, strict=True))),
            laid_out=frame.laid_out,
            **at.fields,
        )
    )
