"""The tracer: bodies of kernels and macros, whose run-time parts become statements of the program."""

from collections.abc import Callable, Sequence

import libcst as cst

from tile2cu.analysis.groups import in_warpgroups
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Const, Expr, Load, Role, Var, static_value, works_among_threads
from tile2cu.core.program import Buffer, If, While
from tile2cu.core.span import Span
from tile2cu.frontend import execute, managers
from tile2cu.frontend.assignments import annotated, assign, augmented
from tile2cu.frontend.context import Context
from tile2cu.frontend.evaluate import evaluate, is_flag
from tile2cu.frontend.execute import Return, statements, unsupported
from tile2cu.frontend.fault import Fault, counted
from tile2cu.frontend.lets import let
from tile2cu.frontend.loops import loop_body, target_names, trace_for
from tile2cu.frontend.lower import debug, extern, loop
from tile2cu.frontend.lower.async_scope import asynchronous
from tile2cu.frontend.operators import truth
from tile2cu.frontend.parse import footer_comments, leading_comments, stands_apart, trailing_comment
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import (
    Allocation,
    AttrFrame,
    BranchFrame,
    Function,
    GroupFrame,
    IfFrame,
    KernelFrame,
    Opaque,
    PipelineFrame,
    WhileFrame,
    describe,
)


def trace_body(cx: Context, body: cst.BaseSuite, env: Env) -> Return | None:
    """Trace the statements of a block; comments after its last statement wait for the next one.

    So do those of an assignment that gives the program nothing, but not across an empty line.
    """
    waiting: int | None = None
    for node in statements(body):
        if waiting is not None and stands_apart(node):
            cx.recorder.forget(waiting)
        waiting = cx.recorder.waiting if isinstance(node, cst.SimpleStatementLine) else None
        flow = trace_statement(cx, node, env)
        if flow is not None:
            return flow
    cx.recorder.note(footer_comments(body))
    return None


def trace_block(cx: Context, body: cst.BaseSuite, env: Env) -> None:
    """Trace a block that nothing returns from: the body of a launch, a loop or a branch."""
    _no_return(trace_body(cx, body, env))


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
            trace_for(cx, node, env)
        case cst.With():
            _trace_with(cx, node, env, node.items)
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
            return Return(None if node.value is None else evaluate(cx, node.value, env), cx.source.span(node))
        case cst.Assert():
            _trace_assert(cx, node, env)
        case cst.Pass() | cst.Del() | cst.Import() | cst.ImportFrom():
            execute.run_small(cx, node, env, "")
        case cst.Break() | cst.Continue():
            loop.leave(cx, "break" if isinstance(node, cst.Break) else "continue")
        case _:
            raise unsupported(node)
    return None


def _trace_expression(cx: Context, node: cst.Expr, env: Env) -> None:
    """A call for its effect; a value that nobody uses is dropped, unless it was meant to allocate."""
    value = evaluate(cx, node.value, env)
    if cx.recorder.in_kernel:
        extern.evaluate(cx, value)
        if isinstance(value, Opaque):  # it may be a part of the kernel, so it must not be passed over
            raise Fault(
                "T2C-F008",
                f"only running the file would show what `{value.what}` does",
                help="write it with operations of the tile language, or as a T.macro in this file or one next to it",
            )
    if isinstance(value, Allocation):
        raise Fault("T2C-F031", "this buffer has no name", help="write `name = T.alloc_...(...)`")


def _trace_assert(cx: Context, node: cst.Assert, env: Env) -> None:
    """An assertion on a run-time value is checked by the kernel."""
    known = frozenset(cx.decided)
    test = evaluate(cx, node.test, env)  # once: it may do something
    if cx.recorder.in_kernel and isinstance(test, Expr) and static_value(test) is None and not is_flag(test):
        debug.check(cx, test, _message(cx, node, env))
    else:
        execute.require(cx, node, env, test, known)


def _message(cx: Context, node: cst.Assert, env: Env) -> object:
    """What an assertion states; its Python text where it names what is known only at run time."""
    if node.msg is None:
        return ""
    try:
        return evaluate(cx, node.msg, env)
    except Tile2CuError as error:
        if error.code != "T2C-F007":
            raise
        return cx.source.code(node.msg)


def _trace_if(cx: Context, node: cst.If, env: Env) -> Return | None:
    """Static conditions choose a branch now; the others become a branch of the program."""
    condition = evaluate(cx, node.test, env)
    if isinstance(condition, Expr) and static_value(condition) is None and not is_flag(condition):
        if works_among_threads(condition):
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
    def otherwise(inner: Env) -> None:
        match node.orelse:
            case cst.If() as chained:
                _no_return(trace_statement(cx, chained, inner))
            case cst.Else(body=body):
                trace_block(cx, body, inner)
            case _:
                pass

    _trace_arms(cx, condition, lambda inner: trace_block(cx, node.body, inner), otherwise, env)


def _trace_arms(
    cx: Context, condition: Expr, first: Callable[[Env], None], second: Callable[[Env], None], env: Env
) -> None:
    """A branch of the program, whose arms are traced by the two functions in frames of their own."""
    cx.recorder.require_kernel("`if` on a run-time value")
    at = cx.recorder.take()
    then_env, else_env = env.inner_frame(loop=False), env.inner_frame(loop=False)
    cx.recorder.depth += 1
    before = env.frame_reads()
    with cx.recorder.block() as then:
        first(then_env)
    aside = env.put_aside(before, else_env)
    with cx.recorder.block() as orelse:
        second(else_env)
    env.put_back(aside)
    cx.recorder.depth -= 1
    then_env.end_frame()
    else_env.end_frame()
    for branch in If(condition=condition, then=(), **at.fields).with_arms(tuple(then), tuple(orelse)):
        cx.recorder.emit(branch)


def _no_return(flow: Return | None) -> None:
    if flow is not None:
        fault = Fault(
            "T2C-F031",
            "`return` is inside T.Kernel, a loop or a branch",
            help="write what follows into an `else`; results leave a kernel through its tensors",
        )
        raise fault if flow.place is None else fault.at(flow.place)


def _trace_while(cx: Context, node: cst.While, env: Env) -> None:
    before = cx.recorder.emitted
    _trace_while_on(cx, node, evaluate(cx, node.test, env), before, env)


def _trace_while_on(cx: Context, node: cst.While | cst.With, condition: object, before: int, env: Env) -> None:
    """A loop on a condition; `before` is how many statements there were before it was evaluated."""
    if cx.recorder.emitted != before:
        raise Fault(
            "T2C-F031",
            "the condition of a `while` is asked again in each iteration, and this one does something",
            help="do it in the body: before `while`, and at its end for the next iteration",
        )
    if isinstance(condition, Expr) and static_value(condition) is None and not is_flag(condition):
        _trace_device_while(cx, node, condition, env)
        return
    if truth(condition, "the condition of this `while`"):
        raise Fault("T2C-F026", "this `while` never ends: its condition is true at transpile time")


def _trace_device_while(cx: Context, node: cst.While | cst.With, condition: Expr, env: Env) -> None:
    cx.recorder.require_kernel("`while` on a run-time value")
    if isinstance(node, cst.While) and node.orelse is not None:
        raise Fault("T2C-F012", "`else` of a loop is not supported in a kernel")
    at = cx.recorder.take()
    body = loop_body(cx, node.body, env.inner_frame(loop=True))
    cx.recorder.emit(While(condition=condition, body=body, **at.fields))


_BLOCK_NAMES = ("bx", "by", "bz")
_Inside = Callable[[Env], None]  # traces what is in a `with`


def _trace_with(cx: Context, node: cst.With, env: Env, items: Sequence[cst.WithItem]) -> None:
    """`with T.Kernel(...) as (bx, by):` and the language's other blocks; of T.If, the next item may be its arm."""
    item, *others = items
    before = cx.recorder.emitted
    frame = evaluate(cx, item.item, env)
    if others and isinstance(frame, WhileFrame):
        raise Fault("T2C-F012", "T.While with other items is not supported in a kernel", help="write one in the other")

    def inside(scope: Env) -> None:
        if others:
            _trace_with(cx, node, scope, others)
        else:
            trace_block(cx, node.body, scope)

    match frame:
        case KernelFrame():
            _trace_launch(cx, frame, item, inside, env)
        case IfFrame():
            _trace_branch(cx, node, frame, others, env)
        case WhileFrame():
            _trace_while_on(cx, node, frame.condition, before, env)
        case PipelineFrame():
            _trace_pipeline(cx, frame, inside, env)
        case AttrFrame():
            _trace_attr(cx, frame, inside, env)
        case GroupFrame():
            _trace_group(cx, frame, inside, env)
        case _:
            _trace_managed(cx, frame, item, inside, env)


def _trace_managed(cx: Context, manager: object, item: cst.WithItem, inside: _Inside, env: Env) -> None:
    def block(entered: object) -> None:
        if item.asname is not None:
            assign(cx, item.asname.name, entered, env, cx.source.code(item.item))
        inside(env)

    managers.run(cx, manager, item, block)


def _trace_launch(cx: Context, frame: KernelFrame, item: cst.WithItem, inside: _Inside, env: Env) -> None:
    targets = [] if item.asname is None else target_names(cx, item.asname.name)
    single = item.asname is not None and isinstance(item.asname.name, cst.Name)
    if targets and len(targets) != len(frame.grid) and not single:
        raise Fault(
            "T2C-F025", f"T.Kernel has {counted(len(frame.grid), 'grid extent')}, but {counted(len(targets), 'name')}"
        )
    spread = single and len(frame.grid) > 1
    names = [name for name, _ in targets] if targets and not spread else list(_BLOCK_NAMES[: len(frame.grid)])
    inner = env.inner_frame(loop=False)
    with cx.recorder.launch(frame, names) as blocks:
        if spread:
            inner.bind(targets[0][0], blocks, targets[0][1])
        for (name, span), var in zip([] if spread else targets, blocks, strict=False):
            inner.bind(name, var, span)
        inside(inner)
    inner.end_frame()


def _trace_branch(cx: Context, node: cst.With, frame: IfFrame, others: Sequence[cst.WithItem], env: Env) -> None:
    """`with T.If(condition):`: Python's `if`, whose arms are the bodies of T.Then() and T.Else()."""
    inside: Sequence[cst.CSTNode] = [node.with_changes(items=others)] if others else statements(node.body)
    arms = {_arm_name(cx, each, env): each.body for each in inside if isinstance(each, cst.With)}
    if len(arms) < len(inside) or not arms.keys() <= {"T.Then", "T.Else"}:
        raise Fault("T2C-F012", "`with T.If(...):` contains `with T.Then():` and `with T.Else():`, once each, alone")

    def arm(name: str) -> Callable[[Env], None]:
        return lambda inner: trace_block(cx, arms[name], inner) if name in arms else None

    condition = frame.condition
    if isinstance(condition, Expr) and static_value(condition) is None and not is_flag(condition):
        _trace_arms(cx, condition, arm("T.Then"), arm("T.Else"), env)
    else:
        arm("T.Then" if truth(condition, "the condition of T.If") else "T.Else")(env)


def _arm_name(cx: Context, node: cst.With, env: Env) -> str:
    frame = evaluate(cx, node.items[0].item, env) if len(node.items) == 1 else None
    return frame.name if isinstance(frame, BranchFrame) else ""


def _trace_attr(cx: Context, frame: AttrFrame, inside: _Inside, env: Env) -> None:
    """`with T.attr(...):`, whose statements are where it is."""
    first, outer = cx.recorder.position, cx.recorder.reducer
    cx.recorder.reducer = frame.reducer
    inside(env)
    cx.recorder.reducer = outer
    if frame.asynchronous:
        first.block[first.at :] = asynchronous(first.block[first.at :])


def _trace_group(cx: Context, frame: GroupFrame, inside: _Inside, env: Env) -> None:
    """`with T.ws(group):`: one group of threads does what is inside."""
    at = cx.recorder.take()
    inner = env.inner_frame(loop=False)
    cx.recorder.depth += 1
    with cx.recorder.block() as body:
        inside(inner)
    cx.recorder.depth -= 1
    inner.end_frame()
    branch = If(condition=in_warpgroups(frame.numbers), then=tuple(body), span=at.span, comments=at.comments)
    cx.recorder.emit(branch)


def _trace_pipeline(cx: Context, frame: PipelineFrame, inside: _Inside, env: Env) -> None:
    """`with T.pipeline():`: serial loops that are directly inside are pipelined."""
    outer, cx.recorder.pipelined = cx.recorder.pipelined, frame.num_stages
    inside(env)
    cx.recorder.pipelined = outer


def _references(node: cst.FunctionDef) -> set[str]:
    """The parameters of a macro that are annotated with T.Ref: the macro assigns to what is passed."""
    noted = ((param.name.value, param.annotation) for param in node.params.params)
    return {
        name
        for name, note in noted
        if note is not None and isinstance(note.annotation, cst.Attribute) and note.annotation.attr.value == "Ref"
    }


def call_macro(cx: Context, function: Function, values: dict[str, object]) -> object:
    """Inline a macro: its statements are traced here, its names are its own."""
    assert isinstance(function.node, cst.FunctionDef)
    env = Env(function.env)
    for param, value in values.items():
        by_reference = param in _references(function.node)
        changeable = isinstance(value, Var) and value.role is Role.MUTABLE and not by_reference
        if by_reference and not isinstance(value, Load | Buffer) and getattr(value, "role", None) is not Role.MUTABLE:
            raise Fault(
                "T2C-F023",
                f"`{param}` is T.Ref, and gets {describe(value)}",
                help="pass a variable of T.alloc_var, or an element of a buffer",
            )
        computed = isinstance(value, Expr) and not isinstance(value, Var | Const | Load)
        if (changeable or computed) and cx.recorder.in_kernel:
            assert isinstance(value, Expr)
            value = let(cx, param, value)
        env.bind(param, value, cx.source.span(function.node.name))
    flow = trace_body(cx, function.node.body, env)
    return flow.value if flow is not None else None
