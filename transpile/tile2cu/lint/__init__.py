"""Warnings about a kernel that is emitted: what its author probably does not want.

Each lint asks analysis/ or the facts one question about a launch; the codes are described in core/codes_warnings.py.
`# tile2cu: ignore[W002]` at the end of a line, or on the line above, silences the warnings named about that line.
"""

from collections.abc import Callable, Iterator, Sequence

from tile2cu.core.errors import Tile2CuWarning
from tile2cu.lint.ignored import is_ignored
from tile2cu.lint.lints import (
    copies_from_several_places,
    dropped_calls,
    integer_overflows,
    lost_comments,
    races_of_iterations,
    reads_of_unwritten_tiles,
    rebound_names,
    scalar_gemms,
    spilled_fragments,
    uncoalesced_accesses,
    uncovered_dimensions,
)
from tile2cu.plan.resolved import Resolved

Lint = Callable[[Resolved], Iterator[Tile2CuWarning]]

LINTS: tuple[Lint, ...] = (
    reads_of_unwritten_tiles,
    uncovered_dimensions,
    uncoalesced_accesses,
    dropped_calls,
    rebound_names,
    copies_from_several_places,
    races_of_iterations,
    scalar_gemms,
    integer_overflows,
    spilled_fragments,
)


def warnings_of(launches: Sequence[Resolved], source: str) -> tuple[Tile2CuWarning, ...]:
    """The warnings about a kernel and its emitted source, each once, in the order of their places."""
    text = launches[0].program.source.text
    found = [warning for resolved in launches for lint in LINTS for warning in lint(resolved)]
    found += (warning for resolved in launches for warning in lost_comments(resolved, source))
    kept = dict.fromkeys(warning for warning in found if not is_ignored(warning, text))
    return tuple(sorted(kept, key=lambda warning: (warning.span, warning.code)))
