"""Candidates for the schedule of a loop: strategies propose them, and all are judged here."""

from collections.abc import Iterable

from tile2cu.analysis.legality import why_not
from tile2cu.core.decisions import SCHEDULE, SHARED_LAYOUT
from tile2cu.core.program import Loop, LoopKind
from tile2cu.core.schedule import InOrder, MmaInFlight, MmaOverlap, PingPong, Pipeline, Schedule
from tile2cu.rules.engine import Context
from tile2cu.rules.memory.storage import shared_budget_of, workspaces_of
from tile2cu.rules.schedule.concurrent_mmas import most_alive
from tile2cu.rules.schedule.register_budget import fit, registers_left, registers_of


def scheduled(candidates: Iterable[Schedule], loop: Loop, pipeline: Pipeline, context: Context) -> Schedule | None:
    """The first of the candidates by which a loop can run; None for none, or where it has a schedule already."""
    if context.facts.get(loop, SCHEDULE) is not None:
        return None
    return next((one for one in candidates if not why_unsuitable(one, loop, pipeline, context)), None)


def why_unsuitable(candidate: Schedule, loop: Loop, pipeline: Pipeline, context: Context) -> str:
    """Why a loop cannot run by a schedule: a dependence that it breaks, or what it has no room for; empty if it can."""
    loops = [op for op in context.statements if isinstance(op, Loop) and op.kind is LoopKind.PIPELINED]
    if len(loops) > 1 and not isinstance(candidate, InOrder):
        return f"the kernel has {len(loops)} pipelined loops"
    return why_not(candidate, pipeline.body, loop) or _why_no_room(candidate, context)


def _why_no_room(candidate: Schedule, context: Context) -> str:
    """What does not fit into registers, besides MMAs in flight, or into shared memory."""
    launch = context.launch
    match candidate:
        case PingPong(store=store, second=second) if registers_left(candidate, launch) < 0:
            one, two = store.src.buffer.name, second.c.buffer.name
            return f"`{one}` in one warpgroup and `{two}` in two need too many registers"
        case MmaOverlap() if not fit(registers_of(launch, context), launch):
            return "fragments need too many registers besides MMAs in flight"
        case InOrder(waits=waits) if waits and not fit(most_alive(candidate, context), launch):
            return "fragments that would be live together need too many registers"
        case MmaInFlight(written=tiles) if tiles:
            budget = shared_budget_of(launch, context, workspaces_of(context), ())
            more = sum(context.facts[tile, SHARED_LAYOUT].bytes for tile in tiles)
            return "" if budget.total + more <= budget.limit else "second stages do not fit into shared memory"
    return ""
