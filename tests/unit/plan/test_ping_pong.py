"""The steps of two warpgroups that alternate, run iteration by iteration, apart from any style."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tile2cu.api import resolved_kernels
from tile2cu.plan.body import Lowering
from tile2cu.plan.ping_pong_ops import (
    AwaitSignal,
    Event,
    IfNext,
    Perform,
    PingPong,
    PingPongKind,
    RunPingPong,
    Signal,
)
from tile2cu.plan.producer_ops import AwaitMmas, Do, ReleaseStage
from tile2cu.plan.structure import Where
from tile2cu.targets import find

EXAMPLE = Path(__file__).parents[3] / "examples" / "mla_decode.py"
What = PingPongKind | tuple[type, Event] | type
Done = list[tuple[What, int]]  # what a warpgroup does, of which iteration


@pytest.fixture(scope="module")
def loop() -> PingPong:
    *_, launches = resolved_kernels(EXAMPLE, kernel=None, target=find("cuda:sm_90a"), bindings={})
    launch = launches[-1]
    block = Lowering(launch).body(launch.launch.body, Where())
    (found,) = (each.op for part in block for each in part.statements if isinstance(each.op, PingPong))
    return found


def done(op: PingPong, number: int, count: int) -> Done:
    """What a warpgroup does in a loop of `count` iterations, in order."""

    def flat(dos: tuple[Do, ...], k: int) -> Iterator[tuple[What, int]]:
        for do in dos:
            at = k + do.shift
            match do:
                case IfNext():
                    yield from flat(do.followed if k + 1 < count else do.last, k)
                case RunPingPong():
                    yield do.part.kind, at
                    ops = (each for each in do.part.contents if isinstance(each, Signal | AwaitSignal))
                    yield from (((type(each), each.event), at) for each in ops)
                case Perform(op=Signal() | AwaitSignal() as each):
                    yield (type(each), each.event), at
                case AwaitMmas() | ReleaseStage():
                    yield type(do), at

    steps = op.steps[number]
    return [
        each
        for k in range(count)
        for dos in (steps.own if k % 2 == number else steps.other, steps.both)
        for each in flat(dos, k)
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 6])
def test_each_iteration_is_started_by_its_owner_and_ended_by_both(loop: PingPong, count: int) -> None:
    for number in (0, 1):
        found = Counter(done(loop, number, count))
        for k in range(count):
            own = k % 2 == number
            assert found[PingPongKind.START_OWN, k] == found[PingPongKind.SEND, k] == own
            assert found[PingPongKind.RECEIVE, k] == (not own)
            assert found[PingPongKind.START_BOTH, k] == found[PingPongKind.PREPARE, k] == found[ReleaseStage, k] == 1


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_no_warpgroup_waits_for_a_signal_that_does_not_come(loop: PingPong, count: int) -> None:
    """Both run until neither can continue: a wait continues where the other has signalled the iteration."""
    left = [done(loop, number, count) for number in (0, 1)]
    signalled: list[set[tuple[Event, int]]] = [set(), set()]
    for _ in range(sum(map(len, left))):
        for number in (0, 1):
            match left[number]:
                case [((kind, event), k), *_] if kind is AwaitSignal and (event, k) not in signalled[1 - number]:
                    pass
                case [((kind, event), k), *rest]:
                    if kind is Signal:
                        signalled[number].add((event, k))
                    left[number] = rest
                case [_, *rest]:
                    left[number] = rest
    assert left == [[], []]


def test_a_warpgroup_starts_its_own_iteration_before_the_last_mma_of_the_one_before(loop: PingPong) -> None:
    order = done(loop, 1, 4)
    for k in (1, 3):
        assert order.index((PingPongKind.START_OWN, k)) < order.index((PingPongKind.START_BOTH, k - 1))
    order = done(loop, 0, 4)
    assert order.index((PingPongKind.START_OWN, 2)) > order.index((PingPongKind.START_BOTH, 1))


def test_what_overwrites_values_that_are_needed_yet_comes_behind_their_copy(loop: PingPong) -> None:
    """The warpgroup that computes early prepares the last MMA with copies, made before it computes them anew."""
    order = done(loop, 1, 4)
    for k in (0, 2):
        assert order.index((PingPongKind.KEEP, k)) < order.index((PingPongKind.SEND, k + 1))
    for number, steps in enumerate(loop.steps):
        (prepare,) = (do for do in steps.both if isinstance(do, RunPingPong) and do.part.kind is PingPongKind.PREPARE)
        assert all(tile.name.endswith("_now") == (number == 1) for tile in prepare.values)
