"""What two alternating warpgroups do, iteration by iteration, and in which steps at the earliest."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tile2cu.plan.ping_pong_ops import AwaitSignal, Event, IfNext, Perform, PingPong, PingPongKind, RunPingPong, Signal
from tile2cu.plan.producer_ops import AwaitMmas, Do, ReleaseStage

Exchanged = tuple[type, Event]  # a signal, or the wait for it
What = PingPongKind | Exchanged | type
Did = tuple[What, int]  # of which iteration

STEPS = (PingPongKind.START_OWN, PingPongKind.SEND, PingPongKind.RECEIVE, PingPongKind.START_BOTH)


def done(op: PingPong, number: int, count: int) -> list[Did]:
    """What a warpgroup does in a loop of `count` iterations, in order: a part is behind its waits."""

    def flat(dos: tuple[Do, ...], k: int) -> Iterator[Did]:
        for do in dos:
            at = k + do.shift
            match do:
                case IfNext():
                    yield from flat(do.followed if k + 1 < count else do.last, k)
                case RunPingPong():
                    yield from ((each, at) for each in _exchanged(do, AwaitSignal))
                    yield do.part.kind, at
                    yield from ((each, at) for each in _exchanged(do, Signal))
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


def _exchanged(do: RunPingPong, kind: type[Signal] | type[AwaitSignal]) -> Iterator[Exchanged]:
    return ((kind, each.event) for each in do.part.contents if isinstance(each, kind))


@dataclass
class Timeline:
    """The step at which each part of an iteration is, at the earliest, and each load of a warpgroup's slabs of a tile.

    Each takes one step. A load is behind those before it and the release of what is in its stage, first MMAs are behind
    their loads, and a wait is behind the step that signals.
    """

    stages: int

    groups: tuple[dict[Did, int], dict[Did, int]] = field(default_factory=lambda: ({}, {}))
    loads: dict[tuple[int, int], int] = field(default_factory=dict)
    signals: dict[tuple[Event, int], int] = field(default_factory=dict)

    released: dict[tuple[int, int], int] = field(default_factory=dict)

    def do(self, number: int, what: What, k: int) -> bool:
        """Adds what a warpgroup does next, unless it waits for what has no step yet."""
        steps = self.groups[number]
        at = max(steps.values(), default=0) + 1
        match what:
            case (kind, event) if kind is AwaitSignal:
                if (event, k) not in self.signals:
                    return False
                steps[what, k] = max(at - 1, self.signals[event, k])
            case (_, event):
                self.signals[event, k] = at - 1
            case PingPongKind() if what in STEPS:
                loaded = [self.loads.get((k, part)) for part in (0, 1)]
                if None in loaded:
                    return False
                steps[what, k] = max(at, *(1 + (each or 0) for each in loaded))
            case _ if what is ReleaseStage:
                self.released[k, number] = at
                self.load()
        return True

    def load(self) -> None:
        """Adds the loads whose stage is free, in the order of the tiles."""
        while True:
            tile, part = next_load = divmod(len(self.loads), 2)
            free = 0 if tile < self.stages else self.released.get((tile - self.stages, part))
            if free is None:
                return
            self.loads[next_load] = max(free, *self.loads.values()) if self.loads else free


def timeline(op: PingPong, count: int) -> Timeline:
    """The timeline of a loop of `count` iterations, whose first tiles are loaded in step 0."""
    left, found = [done(op, number, count) for number in (0, 1)], Timeline(stages=op.iterations.stages)
    found.load()
    while any(left):
        before = sum(map(len, left))
        for number, pending in enumerate(left):
            while pending and found.do(number, *pending[0]):
                pending.pop(0)
        if sum(map(len, left)) == before:
            raise ValueError("a warpgroup waits for a signal or a load that does not come")
    return found
