"""Pipelined loops whose iterations do all their work in one branch: the producer can skip the same iterations."""

from msgspec.structs import replace

from tile2cu.analysis.control import only_arm
from tile2cu.analysis.dependence import keeps
from tile2cu.analysis.effects import effects, may_leave
from tile2cu.analysis.prelude import before, outermost
from tile2cu.analysis.uses import pipelined_loops, read_in, statements, writers
from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Expr, Load, Role, Var, binary, int_const
from tile2cu.core.program import Buffer, Copy, If, Launch, Let, LoopKind, Scope
from tile2cu.core.rebuild import Body, in_body, with_expressions, with_instead

SKIPPED = "rewrite.iterations.skipped"


def skipped_iterations(launch: Launch) -> Launch | None:
    """The launch whose pipelined loop visits active iterations, each a pipelined loop of one; None where there is none.

        for k in T.Pipelined(n, num_stages=2):          for k in T.serial(n):
            if taken[k]:                        is          if taken[k]:
                ...                                             for _ in T.Pipelined(1, num_stages=2):
                                                                    ...

    The stages of a pipeline continue over iterations. The condition is read where a producer can read it, too: for a
    fragment that was copied from a tensor before the loop, from the tensor.
    """
    loops = pipelined_loops(launch)
    if len(loops) != 1 or not (loops[0].num_stages and _is_one_branch(loops[0].body)):
        return None
    (loop,) = loops
    *lets, branch = loop.body
    assert isinstance(branch, If), "the last statement is the branch"
    inside = only_arm(branch) or ()
    outer_loop = outermost(launch.body, loop)
    copies = _copies_of_tensors((*before(launch.body, outer_loop), outer_loop), launch)

    def from_tensor(expr: Expr) -> Expr | None:
        if not isinstance(expr, Load) or not isinstance(expr.buffer, Buffer):
            return None
        copy = copies.get(expr.buffer.name)
        return _in_tensor(expr, copy) if copy is not None else None

    one = Var(INT32, f"{loop.var.name}_iter", Role.LOOP)
    iteration = replace(loop, var=one, start=int_const(0), stop=int_const(1), body=inside, span=inside[0].span)
    iteration = replace(iteration, comments=(), trailing="")
    decided = with_expressions(replace(branch, then=()), from_tensor)
    about = f"Iterations that do not take the branch are skipped by producer and consumers  [{SKIPPED}]"
    outer = replace(
        loop,
        kind=LoopKind.SERIAL,
        num_stages=0,
        stages_asked=0,
        comments=(*loop.comments, about),
        body=(*(with_expressions(let, from_tensor) for let in lets), replace(decided, then=(iteration,))),
    )
    body = with_instead(launch.body, {id(loop): (outer,)})
    return _without_unread(replace(launch, body=body), copies)


def _is_one_branch(body: Body) -> bool:
    """Whether the statements only name values and branch around loads, and nothing leaves the branch."""
    *lets, branch = body or (None,)
    inside = only_arm(branch) if isinstance(branch, If) and not branch.once else None
    if inside is None or not all(isinstance(let, Let) for let in lets):
        return False
    if may_leave(inside):
        return False  # it would leave the one iteration, not the loop
    return any(op.dst.buffer.scope is Scope.SHARED for op in statements(inside, Copy, below=False))


def _copies_of_tensors(body: Body, launch: Launch) -> dict[str, Copy]:
    """By their names, the fragments that one copy of a body fills, whose tensor and data nothing changes later.

    Their elements can then be read from the tensor as well, at the coordinates of the copy.
    """
    return {
        copy.dst.buffer.name: copy
        for position, copy in enumerate(body)
        if isinstance(copy, Copy)
        and _copies_as_it_is(copy)
        and len(writers(launch.body, copy.dst.buffer)) == 1
        and keeps(body[position + 1 :], of=effects(copy))
    }


def _copies_as_it_is(copy: Copy) -> bool:
    """Whether a copy fills a fragment with the elements of a tensor, dimension by dimension."""
    src, dst = copy.src, copy.dst
    uniform = src.buffer.dtype == dst.buffer.dtype and len(src.kept) == len(dst.kept) and not copy.ends
    return uniform and dst.whole and (src.buffer.scope, dst.buffer.scope) == (Scope.GLOBAL, Scope.FRAGMENT)


def _in_tensor(element: Load, copy: Copy) -> Load:
    """The element of the tensor that a copy loads to an element of the fragment."""
    at = [part.start for part in copy.src.ranges]
    for dim, own in zip(copy.src.kept, copy.dst.kept, strict=True):
        at[dim] = binary("+", at[dim], element.indices[own])
    return replace(element, buffer=copy.src.buffer, indices=tuple(at))


def _without_unread(launch: Launch, copies: dict[str, Copy]) -> Launch:
    """The launch without those copies whose fragments are not read any more."""
    read = {buffer.name for buffer in read_in(launch.body)}
    unread = [copy for name, copy in copies.items() if name not in read]
    kept = tuple(tile for tile in launch.tiles if all(copy.dst.buffer is not tile for copy in unread))
    body = in_body(launch.body, lambda body, position: () if any(body[position] is copy for copy in unread) else None)
    return replace(launch, body=body, tiles=kept)
