"""The steps of two warpgroups that alternate, run iteration by iteration, apart from any style."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tile2cu.api import resolved_kernels
from tile2cu.plan.body import Lowering
from tile2cu.plan.ping_pong_ops import AwaitSignal, Event, PingPong, PingPongKind, RunPingPong, Signal
from tile2cu.plan.ping_pong_order import What, done, timeline
from tile2cu.plan.producer_ops import AwaitMmas, ReleaseStage
from tile2cu.plan.structure import Where
from tile2cu.targets import find

EXAMPLE = Path(__file__).parents[3] / "examples" / "mla_decode.py"


@pytest.fixture(scope="module")
def loop() -> PingPong:
    *_, launches = resolved_kernels(EXAMPLE, kernel=None, target=find("cuda:sm_90a"), bindings={})
    launch = launches[-1]
    block = Lowering(launch).body(launch.launch.body, Where())
    (found,) = (each.op for part in block for each in part.statements if isinstance(each.op, PingPong))
    return found


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


# ---- what the emitted table of barriers and the comment above the loop prove ----

STORED, ISSUED = Event.STORED, Event.MMAS_ISSUED
Place = tuple[int, int]  # of a warpgroup, in order


class Order:
    """Which of the things that the warpgroups do happen before which: by program order, and by signals."""

    def __init__(self, op: PingPong, count: int) -> None:
        self.done = [done(op, number, count) for number in (0, 1)]
        self.awaited = {
            (1 - number, self.done[1 - number].index(((Signal, what[1]), k))): (number, place)
            for number in (0, 1)
            for place, (what, k) in enumerate(self.done[number])
            if isinstance(what, tuple) and what[0] is AwaitSignal
        }

    def at(self, number: int, what: What, k: int) -> Place:
        """Where a warpgroup does something, which it does once."""
        assert self.done[number].count((what, k)) == 1
        return number, self.done[number].index((what, k))

    def precede(self, first: Place, second: Place) -> bool:
        """Whether one is provably before the other."""
        if first[0] == second[0]:
            return first[1] < second[1]
        return any(
            signal[0] == first[0] and signal[1] >= first[1] and self.precede(waits, second)
            for signal, waits in self.awaited.items()
        )

    def complete(self, number: int, kind: PingPongKind, k: int) -> Place:
        """The wait for the MMAs that a warpgroup starts for an iteration: the next one behind their start."""
        _, start = self.at(number, kind, k)
        place = next(n for n, (what, _) in enumerate(self.done[number]) if n > start and what is AwaitMmas)
        return number, place


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8])
def test_slabs_are_read_after_their_owner_has_waited_for_them_and_released_after_both_have_read_them(
    loop: PingPong, count: int
) -> None:
    order = Order(loop, count)
    for k in range(count):
        owner, other = k % 2, 1 - k % 2
        arrived = order.complete(owner, PingPongKind.START_OWN, k)  # behind its waits for all slabs
        assert order.precede(arrived, order.at(other, PingPongKind.START_BOTH, k))
        for number in (0, 1):
            release = order.at(number, ReleaseStage, k)
            assert order.precede(order.complete(number, PingPongKind.START_BOTH, k), release)
            assert order.precede(arrived, release)


@pytest.mark.parametrize("count", [3, 4, 7, 8])
def test_named_barriers_are_used_again_after_their_last_use(loop: PingPong, count: int) -> None:
    """Iteration k + 2 has the numbers of k: it arrives after the other warpgroup has waited."""
    order = Order(loop, count)
    for k in range(count - 2):
        for event in (STORED, *[ISSUED] * (k % 2 == 0)):
            waits = order.at(1 - k % 2, (AwaitSignal, event), k)
            assert order.precede(waits, order.at(k % 2, (Signal, event), k + 2))
            turned = order.at(1 - k % 2, (Signal, STORED), k + 1)
            assert order.precede(waits, turned)
            assert order.precede(order.at(k % 2, (AwaitSignal, STORED), k + 1), order.at(k % 2, (Signal, event), k + 2))


@pytest.mark.parametrize("count", [2, 3, 7, 8])
def test_what_is_exchanged_is_loaded_before_its_warp_overwrites_it(loop: PingPong, count: int) -> None:
    order = Order(loop, count)
    for k in range(count - 1):
        loaded = order.at(1 - k % 2, PingPongKind.RECEIVE, k)
        assert order.precede(loaded, order.at(1 - k % 2, PingPongKind.SEND, k + 1))
        assert order.precede(order.at(k % 2, (Signal, STORED), k), loaded)


def test_the_second_warpgroup_is_one_iteration_ahead_and_needs_two_stages(loop: PingPong) -> None:
    order = Order(loop, 6)
    for k in (0, 2, 4):
        ahead = order.at(1, PingPongKind.SEND, k + 1)
        assert order.precede(ahead, order.at(1, PingPongKind.START_BOTH, k))
        assert order.precede(order.at(1, PingPongKind.START_OWN, k + 1), order.at(1, ReleaseStage, k))
    stages = replace(loop.iterations, stages=1)
    with pytest.raises(ValueError, match="does not come"):
        timeline(replace(loop, iterations=stages), 6)


def test_steps_of_the_timeline_are_behind_what_they_wait_for(loop: PingPong) -> None:
    found = timeline(loop, 8)
    for (tile, part), step in found.loads.items():
        if tile >= loop.iterations.stages:
            assert step > found.groups[part][PingPongKind.START_BOTH, tile - loop.iterations.stages]
        if tile < 8:
            assert step < found.groups[tile % 2][PingPongKind.START_OWN, tile]
    for k in range(8):
        sent, received = found.groups[k % 2][PingPongKind.SEND, k], found.groups[1 - k % 2][PingPongKind.RECEIVE, k]
        assert sent < received < found.groups[1 - k % 2][PingPongKind.START_BOTH, k]
