"""The arrivals and waits at each barrier while a kernel runs, and the same in its table of barriers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from tile2cu_runtime.ptx.barriers import MemoryBarriers, NamedBarriers
from tile2cu_runtime.ptx.operands import address, source

_HEAD = re.compile(r"  // (barrier +)(completed by +)(waiting +)orders")
_CONSUMERS = re.compile(r"(\d+) consumer warps")
_GROUP = 4  # warps


@dataclass(frozen=True, kw_only=True)
class Use:
    """The warps of a block that arrive and that wait; `copied` if bytes of copies complete the phase."""

    arriving: frozenset[int]
    waiting: frozenset[int]
    copied: bool


@dataclass(kw_only=True)
class _Seen:
    arriving: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)
    copied: bool = False

    def use(self) -> Use:
        return Use(arriving=frozenset(self.arriving), waiting=frozenset(self.waiting), copied=self.copied)


class Trace:
    """The barriers of all runs: mbarriers by their place, named barriers by number."""

    def __init__(self) -> None:
        self._mbarriers: defaultdict[tuple[int, int], _Seen] = defaultdict(_Seen)
        self._named: defaultdict[int, _Seen] = defaultdict(_Seen)

    def mbarriers(self) -> set[Use]:
        return {seen.use() for seen in self._mbarriers.values()}

    def named(self, number: int) -> Use:
        return self._named[number].use()

    def arrive(self, barriers: MemoryBarriers, t: Any, place: int, thread: int) -> None:
        self._mbarriers[id(barriers), place].arriving.add(int(t.thread[thread]) // 32)

    def deliver(self, barriers: MemoryBarriers, place: int) -> None:
        self._mbarriers[id(barriers), place].copied = True

    def wait(self, barriers: MemoryBarriers, t: Any, instruction: Any, taken: Any, kernel: Any) -> None:
        at = address(instruction.operands[1], kernel)(t)
        for thread in np.flatnonzero(taken).tolist():
            place = barriers.place(t, instruction, at, thread)
            self._mbarriers[id(barriers), place].waiting.add(int(t.thread[thread]) // 32)

    def come(self, t: Any, instruction: Any, taken: Any, kernel: Any) -> None:
        numbers = source(instruction.operands[0], np.uint32, kernel)(t)
        for thread in np.flatnonzero(taken).tolist():
            seen = self._named[int(numbers[thread])]
            who = seen.waiting if "sync" in instruction.modifiers else seen.arriving
            who.add(int(t.thread[thread]) // 32)


@contextmanager
def traced() -> Iterator[Trace]:
    """Records what the PTX machine's threads do at barriers."""
    trace = Trace()
    arrive, deliver, wait, come = (
        MemoryBarriers.arrive, MemoryBarriers.deliver, MemoryBarriers.wait, NamedBarriers.come
    )  # fmt: skip

    def arrives(self: MemoryBarriers, t: Any, instruction: Any, place: int, thread: int, **more: int) -> int:
        trace.arrive(self, t, place, thread)
        return arrive(self, t, instruction, place, thread, **more)

    def delivers(self: MemoryBarriers, t: Any, place: int, size: int) -> None:
        trace.deliver(self, place)
        deliver(self, t, place, size)

    def waits(self: MemoryBarriers, t: Any, instruction: Any, taken: Any, kernel: Any, here: int) -> None:
        trace.wait(self, t, instruction, taken, kernel)
        wait(self, t, instruction, taken, kernel, here)

    def comes(self: NamedBarriers, t: Any, instruction: Any, taken: Any, kernel: Any) -> None:
        trace.come(t, instruction, taken, kernel)
        come(self, t, instruction, taken, kernel)

    with (
        mock.patch.object(MemoryBarriers, "arrive", arrives),
        mock.patch.object(MemoryBarriers, "deliver", delivers),
        mock.patch.object(MemoryBarriers, "wait", waits),
        mock.patch.object(NamedBarriers, "come", comes),
    ):
        yield trace


def table(text: str) -> list[tuple[str, str, str]]:
    """The table's rows: barrier, by whom it is completed, who waits."""
    head = _HEAD.search(text)
    if head is None:
        return []
    first, second, third = (len(column) for column in head.groups())
    rows = []
    for line in text[head.end() + 1 :].splitlines():
        cells = line.removeprefix("  // ")
        if cells.startswith(("The producer's arrival", "Slabs ")):
            return rows
        row = cells[:first].strip(), cells[first:][:second].strip(), cells[first + second :][:third].strip()
        if row[0]:
            rows.append(row)
    raise AssertionError("the table has no end")


def disagreements(text: str, trace: Trace) -> list[str]:
    """Barriers that no row of the source's table describes, and rows without a barrier that is used."""
    rows = table(text)
    consumers = int(_CONSUMERS.search(text)[1])  # type: ignore[index]
    said = {row: _uses(row, consumers) for row in rows if not row[0].startswith("tl::")}
    seen = trace.mbarriers()
    known = {use for uses in said.values() for use in uses}
    missing = [f"{row}: not observed" for row, uses in said.items() if not seen & uses]
    return missing + [f"{use}: not in the table" for use in seen - known] + list(_named(rows, trace, text))


def _uses(row: tuple[str, str, str], consumers: int) -> set[Use]:
    """How a barrier of the row may be used: one of warpgroup g by that one, one that an owner waits for by each."""
    barrier, completed, waiting = row
    everyone = range(consumers)
    halves = (everyone[:_GROUP], everyone[_GROUP:])
    if "[g]" in barrier:
        return {_use(group, _warps(waiting, consumers)) for group in halves}
    waiters = halves if waiting == "warpgroup k % 2" else (_warps(waiting, consumers),)
    copied = completed == "producer; TMA"
    arriving = {consumers} if copied else _warps(completed, consumers)
    return {_use(arriving, waiter, copied) for waiter in waiters}


def _use(arriving: Iterable[int], waiting: Iterable[int], copied: bool = False) -> Use:
    return Use(arriving=frozenset(arriving), waiting=frozenset(waiting), copied=copied)


def _warps(cell: str, consumers: int) -> set[int]:
    """The warps that a cell names; the producer follows the consumers, and who fetches tiles follows it."""
    found = {consumers + number for number, who in enumerate(("producer", "fetching warp")) if who in cell}
    if "consumer warps" in cell:
        assert int(cell.split()[0]) == consumers
        found |= set(range(consumers))
    return found


def _named(rows: list[tuple[str, str, str]], trace: Trace, text: str) -> Iterator[str]:
    """Events of the table, by the numbers of their named barriers below it: who arrives, and who waits."""
    below = " ".join(re.findall(r"^ *// (.*)$", text, re.M)).partition("Named barriers: ")[2].partition(". ")[0]
    halves = tuple(set(range(first, first + _GROUP)) for first in (0, _GROUP))
    for name, completed, waiting in rows:
        if not name.startswith("tl::"):
            continue
        event = re.sub(r", (even )?k$", "", name)
        found = re.search(rf"{event}(?: \(twice\))?(?:, tl::\w+| and tl::\w+)* (\d)( \+ k % 2)?", below)
        if found is None:
            yield f"{event}: no number"
        elif waiting == completed == "2 warpgroups":
            uses = (_use((), halves[0] | halves[1]),)
            yield from (f"{event}: {trace.named(int(found[1]))}" for use in uses if trace.named(int(found[1])) != use)
        else:
            iterations = (0, 1) if found[2] else (0,)
            for k in iterations:
                first = int(completed.removeprefix("warpgroup ").replace("k % 2", str(k)))
                seen, use = trace.named(int(found[1]) + k), _use(halves[first], halves[1 - first])
                # With few keys there is an iteration 0 only.
                if seen != use and (k == 0 or seen != _use((), ())):
                    yield f"{event} of iteration {k}: {seen}"
