"""What differs between two kernels: two versions of a file, or two targets."""

import difflib
import re
from collections import Counter
from collections.abc import Iterator

from tile2cu.core.record import Record
from tile2cu.explain import Explained, in_words
from tile2cu.review.kernel import Figure, Kernel, figures

_CONTEXT = 3  # lines around a change
_LINE = re.compile(r", line \d+|(?<=\.py):\d+(?:-\d+)?")  # numbers of the Python file's lines, which any edit moves


class Change(Record, frozen=True, kw_only=True):
    """The decisions about a place of only one of the two. `line` is its line in the version that has the place last."""

    place: str
    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


class Difference(Record, frozen=True, kw_only=True):
    """A figure that differs: both values, empty where one kernel has none, and by how much a number changed."""

    name: str
    before: str
    after: str
    change: str = ""


class Comparison(Record, frozen=True, kw_only=True):
    """Two kernels named `before` and `after`: decisions and figures that differ, and the differences of sources.

    Differences of sources are lines in unified format. Numbers of the Python file's lines are left out of figures and
    of the emitted source.
    """

    label: str
    before: str
    after: str
    changes: tuple[Change, ...]
    figures: tuple[Difference, ...]
    emitted: tuple[str, ...]
    python: tuple[str, ...]


def compared(old: Kernel, new: Kernel, *, label: str, before: str, after: str) -> Comparison:
    """The comparison of two kernels; `before` and `after` name them."""
    return Comparison(
        label=label,
        before=before,
        after=after,
        changes=tuple(_changes(_by_place(old), _by_place(new))),
        figures=tuple(_figures(_all_figures(old), _all_figures(new))),
        emitted=_difference(_LINE.sub("", old.source), _LINE.sub("", new.source), before, after),
        python=_difference(old.python, new.python, before, after),
    )


def _by_place(kernel: Kernel) -> dict[tuple[str, int], Explained]:
    """The decisions by place: a tile's name or a statement's text, with its number among equal ones.

    Lines have other numbers in another version.
    """
    seen: Counter[str] = Counter()
    found: dict[tuple[str, int], Explained] = {}
    for place in kernel.decisions:
        name = place.text if place.about.startswith("line ") else place.about
        found[name, seen[name]] = place
        seen[name] += 1
    return found


def _changes(old: dict[tuple[str, int], Explained], new: dict[tuple[str, int], Explained]) -> Iterator[Change]:
    for key in dict.fromkeys((*new, *old)):
        before, after = (_stated(found.get(key)) for found in (old, new))
        if before != after:
            yield Change(
                place=key[0],
                line=(new.get(key) or old[key]).line,
                before=tuple(each for each in before if each not in after),
                after=tuple(each for each in after if each not in before),
            )


def _stated(place: Explained | None) -> tuple[str, ...]:
    if place is None:
        return ()
    chosen = (f"{in_words(one)}  [{one.rule}]" if one.rule else in_words(one) for one in place.chosen)
    return (*chosen, *(f"not {other.candidate}: {other.because}  [{other.rule}]" for other in place.refused))


def _all_figures(kernel: Kernel) -> dict[str, Figure]:
    return {each.name: each for each in figures(kernel)}


def _figures(old: dict[str, Figure], new: dict[str, Figure]) -> Iterator[Difference]:
    for name in dict.fromkeys((*new, *old)):
        before, after = (_LINE.sub("", found[name].text) if name in found else "" for found in (old, new))
        if before != after:
            yield Difference(name=name, before=before, after=after, change=_change(old.get(name), new.get(name)))


def _change(old: Figure | None, new: Figure | None) -> str:
    """`-16,384 bytes (-33%)`; empty where one has no number, or both have the same."""
    if old is None or new is None or old.number is None or new.number is None or old.number == new.number:
        return ""
    by = new.number - old.number
    share = f" ({by / old.number:+.0%})" if old.number else ""
    return f"{by:+,g} {new.unit}".rstrip() + share


def _difference(old: str, new: str, before: str, after: str) -> tuple[str, ...]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), before, after, lineterm="", n=_CONTEXT)
    return tuple(lines)
