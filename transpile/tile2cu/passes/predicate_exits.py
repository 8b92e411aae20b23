"""A loop that some threads leave before others: predicates instead of `break` and `continue`, so that none leaves.

`if x > 0: continue; A` is `if x > 0: active = False; if active: A`. A barrier or an operation on a whole tile behind
such an exit is then in a branch, not in a loop that diverges.
"""

from msgspec.structs import replace

from tile2cu.analysis.groups import tile_work
from tile2cu.analysis.prelude import around
from tile2cu.analysis.uniformity import MEMORY, uniformity_of
from tile2cu.analysis.uses import exits, names_of, statements, unused
from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import Const, Role, Var
from tile2cu.core.program import Assign, Break, Continue, Declare, If, Launch, Loop, Stmt, While
from tile2cu.core.rebuild import Body, under_comments, with_bodies, with_instead
from tile2cu.core.record import Record


def exits_around(launch: Launch, stmt: Stmt) -> Launch | None:
    """The launch with predicates in the outermost loop around a statement that some threads leave; None for none.

    A `while` that some threads leave by `break` is left as it is: nothing else may end it.
    """
    known = uniformity_of(launch, MEMORY)
    loops = (each for each in around(launch.body, stmt) if isinstance(each, Loop | While))
    return _predicated(launch, next((loop for loop in loops if known.has_diverging_exit(loop.body)), None))


def exits_beside_tiles(launch: Launch) -> Launch | None:
    """The launch with predicates in a loop that some threads leave, and that has operations on whole tiles.

    Rules ask for the same in a loop in which a barrier is needed.
    """
    loops = [
        loop for loop in statements(launch.body, Loop, While) if any(exits(loop.body)) and any(tile_work(loop.body))
    ]
    known = uniformity_of(launch, MEMORY) if loops else None
    left = (loop for loop in loops if known is not None and known.has_diverging_exit(loop.body))
    return _predicated(launch, next(left, None))


def _predicated(launch: Launch, loop: Loop | While | None) -> Launch | None:
    kinds = {type(each) for each in exits(loop.body)} if loop is not None else set()
    if loop is None or (isinstance(loop, While) and Break in kinds):
        return None
    running = _predicate("running", launch) if Break in kinds else None
    active = _predicate("active", launch) if Continue in kinds else None
    return replace(launch, body=with_instead(launch.body, {id(loop): _Predicates(loop, running, active).stmts}))


def _predicate(wish: str, launch: Launch) -> Var:
    """A variable of each thread, of a name that nothing else has."""
    return Var(BOOL, unused(wish, names_of(launch)), Role.MUTABLE)


class _Predicates(Record, frozen=True):
    """A loop that some threads leave: `running` states that a thread still is in it, `active` in this iteration."""

    loop: Loop | While
    running: Var | None
    active: Var | None

    @property
    def stmts(self) -> Body:
        """The loop, with the declaration of its predicate."""
        body, span = self.rest(self.loop.body), self.loop.span
        if self.running is not None:
            body = (If(condition=self.guard, then=body, span=span),)
        if self.active is not None:
            init = Const(BOOL, True) if self.running is None else self.running
            body = (Declare(var=self.active, init=init, span=span), *body)
        if self.running is None:
            return (replace(self.loop, body=body),)
        declared_before = Declare(var=self.running, init=Const(BOOL, True), span=span)
        return under_comments(self.loop, (declared_before, replace(self.loop, body=body)))

    @property
    def guard(self) -> Var:
        """The predicate of the statements of an iteration."""
        found = self.running if self.active is None else self.active
        assert found is not None
        return found

    def rest(self, body: Body) -> Body:
        """Statements; those behind an exit run where the thread is still active."""
        for at, stmt in enumerate(body):
            if not any(exits((stmt,))):
                continue
            ended = self.left(stmt) if isinstance(stmt, Break | Continue) else (with_bodies(stmt, self.rest),)
            behind = self.rest(body[at + 1 :])
            guarded = (If(condition=self.guard, then=behind, span=behind[0].span),) if behind else ()
            return (*body[:at], *ended, *guarded)
        return body

    def left(self, stmt: Break | Continue) -> Body:
        """In the place of an exit: the thread is no longer active."""
        ended = (self.running, self.active) if isinstance(stmt, Break) else (self.active,)
        value = Const(BOOL, False)
        return tuple(Assign(var=var, value=value, span=stmt.span) for var in ended if var is not None)
