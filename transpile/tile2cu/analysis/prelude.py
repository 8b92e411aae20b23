"""Scalar statements that a producer needs for its loads: before its loop, and in the enclosing loops."""

from collections.abc import Iterable, Sequence

from tile2cu.analysis.accesses import expressions, variables, variables_of
from tile2cu.analysis.control import places
from tile2cu.analysis.sync_calls import waits_for_kernels
from tile2cu.core.decisions import PERSISTENT, PIPELINE, PROLOGUE_LOADS
from tile2cu.core.expr import Expr, Role, Var
from tile2cu.core.facts import Facts
from tile2cu.core.program import (
    Assign,
    Atomic,
    Declare,
    If,
    Launch,
    Let,
    Loop,
    Stmt,
    While,
    bodies,
    walk_stmts,
)
from tile2cu.core.rebuild import with_bodies
from tile2cu.core.record import Record
from tile2cu.core.schedule import Pipeline


class Walk(Record, frozen=True, kw_only=True):
    """The loops and branches around a producer's loop, which producer and consumers both run.

    `way`: the `outer`most of them, with only the statements that control flow depends on, and the loop. `values`:
    scalars that either needs there, in order. `loading`, `computing`: the statements of each.
    """

    outer: Stmt
    way: Stmt
    values: tuple[Var, ...]
    loading: tuple[Stmt, ...]
    computing: tuple[Stmt, ...]


def producer_loops(launch: Launch, facts: Facts) -> tuple[tuple[Loop, Pipeline], ...]:
    """The loops whose loads a producer warp issues, one after another, in different statements of the body."""
    loops = ((op, facts.get(op, PIPELINE)) for op in launch.statements if isinstance(op, Loop))
    return tuple((op, pipeline) for op, pipeline in loops if pipeline is not None and pipeline.producer)


def producer_loop(launch: Launch, facts: Facts) -> tuple[Loop, Pipeline] | None:
    """The first of them."""
    return next(iter(producer_loops(launch, facts)), None)


def begins_pipeline(loop: Loop, launch: Launch, facts: Facts) -> Loop:
    """The first of a producer's loops that load the same tiles as this one, which continues its pipeline."""
    tiles = [(op, frozenset(map(id, pipeline.buffers))) for op, pipeline in producer_loops(launch, facts)]
    mine = next((own for op, own in tiles if op is loop), None)
    return next((op for op, own in tiles if own == mine), loop)


def producer_pipelines(launch: Launch, facts: Facts) -> tuple[tuple[Loop, Pipeline], ...]:
    """The loops that begin the pipelines of a producer."""
    return tuple(each for each in producer_loops(launch, facts) if begins_pipeline(each[0], launch, facts) is each[0])


def around(body: tuple[Stmt, ...], stmt: Stmt) -> tuple[Stmt, ...]:
    """The loops and branches of a body that enclose a statement, outermost first; none at the top of the body."""
    for outer in body:
        if outer is not stmt and any(inner is stmt for inner in walk_stmts((outer,))):
            return (outer, *next(filter(None, (around(arm, stmt) for arm in bodies(outer))), ()))
    return ()


def in_other_arms(one: Stmt, other: Stmt, body: tuple[Stmt, ...]) -> bool:
    """Whether two statements are in different arms of a branch: at most one of them runs each time."""
    paths = {id(each.stmt): {id(outer): arm for outer, arm in each.path} for each in places(body)}
    first, second = paths.get(id(one), {}), paths.get(id(other), {})
    return any(second.get(outer, place) != place for outer, place in first.items())


def outermost(body: tuple[Stmt, ...], stmt: Stmt) -> Stmt:
    """The statement of a body that contains another one: itself, where it is at the top."""
    return (*around(body, stmt), stmt)[0]


def before(body: tuple[Stmt, ...], stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements of a block above one of its own."""
    return body[: next(position for position, other in enumerate(body) if other is stmt)]


def behind(body: tuple[Stmt, ...], stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements of a block below one of its own."""
    return body[len(before(body, stmt)) + 1 :]


def above(body: tuple[Stmt, ...], stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements above one in its own block, which is the body or a block below it."""
    return before(block_of(body, stmt), stmt)


def block_of(body: tuple[Stmt, ...], stmt: Stmt) -> tuple[Stmt, ...]:
    """The block that a statement is in: the body, or a block below it."""
    blocks = (body, *(arm for outer in around(body, stmt) for arm in bodies(outer)))
    return next(block for block in blocks if any(other is stmt for other in block))


def loaded_by(loop: Loop, loads: tuple[Stmt, ...]) -> tuple[Expr, ...]:
    """The expressions that the iterations of a loop and its loads depend on."""
    return (loop.start, loop.stop, *(expr for load in loads for expr in expressions(load)))


def prelude(needed: tuple[Expr, ...], above: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements `above` that the values in these expressions depend on, in order; a producer waits, too."""
    names = variables(*needed)
    found: list[Stmt] = []
    for stmt in reversed(above):
        if defined_in(stmt) & names or waits_for_kernels(stmt):
            found.insert(0, stmt)
            names |= depends_on(stmt)
    return tuple(found)


def hoisted(launch: Launch, facts: Facts, idle: Expr | None = None) -> tuple[Stmt, ...]:
    """The statements before producers' loops that their loads and iterations need: producer and consumers run them.

    In a persistent kernel these include the values that identify an `idle` tile.
    """
    first, persistent = facts.get(launch, PROLOGUE_LOADS), facts.get(launch, PERSISTENT)
    idle = persistent.idle if persistent is not None else idle
    prologue = tuple(expr for load in (first.loads if first is not None else ()) for expr in expressions(load))
    found: set[int] = set()
    for loop, pipeline in producer_loops(launch, facts):
        needed = (*needed_on(loop, pipeline.loads, around(launch.body, loop)), *prologue)
        needed += (idle,) if idle is not None else ()
        found |= set(map(id, prelude(needed, before(launch.body, outermost(launch.body, loop)))))
    return tuple(stmt for stmt in launch.body if id(stmt) in found)


def values_of_tile(launch: Launch, facts: Facts, idle: Expr | None) -> tuple[Var, ...]:
    """The block's indices, and values computed from them before a producer's loop that other statements need."""
    shared = hoisted(launch, facts, idle)
    inside = {id(stmt) for stmt in walk_stmts(shared)}
    others = [stmt for stmt in launch.statements if id(stmt) not in inside]
    read = variables(*(expr for stmt in others for expr in expressions(stmt)))
    given = (*launch.blocks, *(stmt.var for stmt in shared if isinstance(stmt, Let | Declare)))
    return tuple(var for var in given if var in read)


def path_to(loops: Sequence[tuple[Loop, Pipeline]], body: tuple[Stmt, ...]) -> Stmt:
    """The statement of a body that contains these producer's loops, with only the statements that select their loads.

    These are the loops and branches around the loops, the scalars that they and the loads depend on, and the loops.
    """
    paths = [(loop, pipeline.loads, around(body, loop)) for loop, pipeline in loops]
    kept = [stmt for loop, loads, path in paths for stmt in (*deciding(loop, loads, path), *path, loop)]
    path = tuple({id(stmt): stmt for _, _, path in paths for stmt in path}.values())
    return _reduced(path, tuple(kept)) if path else loops[0][0]


def walk_of(launch: Launch, facts: Facts) -> Walk | None:
    """The path to the loop of a producer that has only one, if producer and consumers both walk it; None if not."""
    loops = producer_loops(launch, facts)
    return walk_to(*loops[0], launch.body) if len(loops) == 1 else None


def walk_to(loop: Loop, pipeline: Pipeline, body: tuple[Stmt, ...]) -> Walk | None:
    """The path to a producer's loop, if it can be separated from the consumers' statements; None if not.

    The consumers' statements are in the enclosing bodies, or name a value that they alone need; none of them reads a
    variable before the path changes it.
    """
    path = around(body, loop)
    if not path:
        return None
    alone = for_loads_alone(loop, pipeline, body)
    way = [stmt for stmt in deciding(loop, pipeline.loads, path) if not any(stmt is one for one in alone)]
    passed = {id(stmt) for stmt in (*way, *alone, *path)}
    arms = [arm for outer in path for arm in bodies(outer)]
    concurrent = next(arm for arm in arms if any(stmt is loop for stmt in arm))
    named = tuple(stmt for arm in arms if arm is not concurrent for stmt in arm if id(stmt) not in passed)
    computing = (*named, *(stmt for stmt in concurrent if id(stmt) not in passed))
    if not all(isinstance(stmt, Let) for stmt in named):
        return None
    near_ids = {id(stmt) for stmt in concurrent}  # the others move to a later position
    near = [stmt for stmt in (*alone, *computing) if id(stmt) in near_ids and stmt is not loop]
    late = [stmt for stmt in (*alone, *named) if id(stmt) not in near_ids]
    changed_here = _changed([stmt for stmt in way if id(stmt) in near_ids])
    if any(depends_on(stmt) & changed_here for stmt in near) or any(depends_on(stmt) & _changed(way) for stmt in late):
        return None
    needed = set().union(*map(depends_on, (*alone, *computing, *pipeline.loads, *pipeline.body)))
    values = tuple(var for var in _given_on((_reduced(path, (*way, *path)),)) if var in needed)
    if len({var.name for var in values}) < len(values):
        return None
    whole = _reduced(path, (*way, *path, loop))
    return Walk(outer=path[0], way=whole, values=values, loading=(*alone, loop), computing=computing)


def is_iteration(loop: Loop, body: tuple[Stmt, ...]) -> bool:
    """Whether a loop is an iteration of one that skips some: passes/skip_iterations.py."""
    if loop.count != 1 or not any(isinstance(outer, Loop | While) for outer in around(body, loop)):
        return False
    return all(loop.var not in variables(*expressions(stmt)) for stmt in walk_stmts(loop.body))


def walk_to_active(loop: Loop, pipeline: Pipeline, body: tuple[Stmt, ...]) -> Walk | None:
    """The path to an iteration of a top-level loop that skips some, where the loop contains only that iteration.

    None where that is not so: the active iterations are then no sequence like those of one loop.
    """
    path = around(body, loop)
    if len(path) != 2 or not isinstance(path[0], Loop) or not isinstance(path[1], If) or not is_iteration(loop, body):
        return None
    walk = walk_to(loop, pipeline, body)
    return walk if walk is not None and walk.loading == walk.computing == (loop,) else None


def _changed(stmts: Iterable[Stmt]) -> set[Var]:
    """The variables that these statements change."""
    return {var for stmt in stmts for var in defined_in(stmt) if var.role is Role.MUTABLE}


def _given_on(body: tuple[Stmt, ...]) -> list[Var]:
    """The variables that a path names or counts with, in order."""
    parts = [stmt for stmt in walk_stmts(body) if isinstance(stmt, Let | Declare | Loop)]
    return list(dict.fromkeys(part.var for part in parts))


def _reduced(path: tuple[Stmt, ...], kept: tuple[Stmt, ...]) -> Stmt:
    """The outermost statement of a path with only the statements `kept`."""
    chosen = {id(stmt) for stmt in kept}

    def reduced(stmt: Stmt) -> Stmt:
        if not any(stmt is outer for outer in path):
            return stmt
        return with_bodies(stmt, lambda body: tuple(reduced(part) for part in body if id(part) in chosen))

    return reduced(path[0])


def needed_on(loop: Loop, loads: tuple[Stmt, ...], path: tuple[Stmt, ...]) -> tuple[Expr, ...]:
    """The expressions that a loop's loads, and the path to the loop, depend on."""
    given = walk_stmts((*deciding(loop, loads, path),))
    return (*(expr for stmt in (*given, *path) for expr in expressions(stmt)), *loaded_by(loop, loads))


def for_loads_alone(loop: Loop, pipeline: Pipeline, body: tuple[Stmt, ...]) -> tuple[Let, ...]:
    """The values on the path to a loop that only the producer needs."""
    inside = {id(stmt) for stmt in walk_stmts(loop.body)}
    rest = [stmt for stmt in walk_stmts(body) if id(stmt) not in inside] + list(walk_stmts(pipeline.body))
    lets = [stmt for stmt in deciding(loop, pipeline.loads, around(body, loop)) if isinstance(stmt, Let)]
    found: list[Let] = []
    while more := [let for let in lets if not any(let.var in variables_of(stmt) for stmt in rest)]:
        found += more
        lets = [let for let in lets if not any(let is one for one in more)]
        rest = [stmt for stmt in rest if not any(stmt is one for one in more)]
    return tuple(found)


def deciding(loop: Loop, loads: tuple[Stmt, ...], path: tuple[Stmt, ...]) -> list[Stmt]:
    """The statements along a path to a loop that define or change values on which the path and the loads depend.

    A producer also waits where the kernel waits for others.
    """
    names = variables(*(expr for stmt in path for expr in expressions(stmt)), *loaded_by(loop, loads))
    passed = {id(stmt) for stmt in (*path, loop)}
    concurrent = [stmt for outer in path for arm in bodies(outer) for stmt in arm if id(stmt) not in passed]
    chosen: list[Stmt] = []
    while more := [stmt for stmt in concurrent if defined_in(stmt) & names or waits_for_kernels(stmt)]:
        concurrent = [stmt for stmt in concurrent if not any(stmt is one for one in more)]
        chosen += more
        names |= set().union(*map(depends_on, more))
    return chosen


def defined_in(stmt: Stmt) -> set[Var]:
    parts = tuple(walk_stmts((stmt,)))
    taken = {part.previous for part in parts if isinstance(part, Atomic) and part.previous is not None}
    return taken | {part.var for part in parts if isinstance(part, Let | Declare | Assign)}


def depends_on(stmt: Stmt) -> set[Var]:
    """The variables that a statement depends on: those that it reads, and the old value of a conditional assignment."""
    parts = tuple(walk_stmts((stmt,)))
    kept = {part.var for part in parts if isinstance(part, Assign)}
    return kept | {var for part in parts for var in variables_of(part)}
