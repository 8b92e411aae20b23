"""Whether programs traced with two settings differ in the values of tile parameters alone.

Then the counts of the first one, with those values, are the counts of the second one for all sizes, and the second one
need not be counted.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from tile2cu.chooser.numbers import Values, parameter_key
from tile2cu.chooser.work import cluster_key, loops_of, stages_key, threads_key
from tile2cu.core.expr import Named
from tile2cu.core.program import Launch, Loop, Program
from tile2cu.core.record import Record

_ABOUT_TEXT = frozenset({"span", "comment", "comments"})  # of the user's file, which decide no count
_THREADS = frozenset({"threads", "shares"})
_STAGES = frozenset({"num_stages", "stages_asked"})


def same_work(program: Program, other: Program, values: Values) -> bool:
    """Whether `other` is `program` where what a key of `values` names has that value.

    `values` are those of parameters, threads, stages and extents of clusters, by the keys of `chooser.work`.
    """
    if len(program.launches) != len(other.launches):
        return False
    pairs = zip(program.launches, other.launches, strict=True)
    return all(_Pair(launch, values, place).same_launch(after) for place, (launch, after) in enumerate(pairs))


class _Pair:
    """A comparison with one launch, at `place` of its program; it compares what expressions share only once."""

    def __init__(self, launch: Launch, values: Values, place: int) -> None:
        self._launch, self._values, self._place = launch, values, place
        self._stages: Mapping[int, str] = {id(loop): stages_key(place, at) for at, loop in enumerate(loops_of(launch))}
        self._known: dict[tuple[int, int], bool] = {}

    def same_launch(self, other: Launch) -> bool:
        launch, values, place = self._launch, self._values, self._place
        threads = values.get(threads_key(place), launch.block_threads)
        cluster = tuple(values.get(cluster_key(place, axis), side) for axis, side in enumerate(launch.cluster))
        return (
            (threads, cluster) == (other.block_threads, other.cluster)
            and len(launch.sizes) == len(other.sizes)
            and self._same_fields(launch, other, _THREADS | {"cluster"})
        )

    def _same(self, one: Any, other: Any) -> bool:
        if one is other:
            return True
        if type(one) is not type(other):
            return False
        if isinstance(one, tuple):
            return len(one) == len(other) and all(map(self._same, one, other))
        if not isinstance(one, Record):
            return bool(one == other)
        key = id(one), id(other)
        if key not in self._known:
            self._known[key] = self._same_data(one, other)
        return self._known[key]

    def _same_data(self, one: Any, other: Any) -> bool:
        if isinstance(one, Named):
            value = self._values.get(parameter_key(one.name), one.value)
            return (one.name, value, one.dtype) == (other.name, other.value, other.dtype)
        if isinstance(one, Loop) and id(one) in self._stages:
            stages = self._values.get(self._stages[id(one)], one.num_stages)
            return bool(stages == other.num_stages) and self._same_fields(one, other, _STAGES)
        return self._same_fields(one, other, frozenset())

    def _same_fields(self, one: Any, other: Any, but: frozenset[str]) -> bool:
        return all(
            self._same(getattr(one, name), getattr(other, name)) for name in _names(one.__class__) if name not in but
        )


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _ABOUT_TEXT)
