"""Where tiles are in the struct of a kernel's shared memory."""

from collections.abc import Callable, Iterable, Iterator

from tile2cu.core.decisions import BLOCK_VOTE
from tile2cu.core.layout import SharedLayout
from tile2cu.core.shared_memory import VOTES, Aliasing, BlockVote, Part, Workspace
from tile2cu.plan import shared
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.comments import wrapped
from tile2cu.styles.base.names import Names
from tile2cu.styles.base.view import Declaration
from tile2cu.styles.base.vocabulary import ONE_WAVE, SHARED

EXCHANGES_SHARE_MEMORY = "each exchange begins with a barrier, so they share memory"
PASSES_FRAGMENT = "; passes a fragment between the warpgroups"


def passes_values(space: Workspace, rule: str, names: Names) -> str:
    """The comment on what values of rows pass through from one warpgroup to the other."""
    assert space.row_values is not None
    return f"{space.bytes:,} bytes; passes {names(space.row_values.name)} between the warpgroups  [{rule}]"


def votes_through(resolved: Resolved, names: Names) -> str:
    """What the waves of a block vote through; empty where none do."""
    votes = {resolved.facts.get(stmt, BLOCK_VOTE) for stmt in resolved.launch.statements}
    if BlockVote.LDS in votes:
        return names(VOTES)
    return ONE_WAVE if BlockVote.WAVE in votes else ""


def counts_votes(space: Workspace, rule: str) -> str:
    """The comment on where the waves of a block exchange their votes."""
    return f"{space.bytes:,} bytes; how many threads of each of {space.warps} waves vote yes  [{rule}]"


def swizzled(layout: SharedLayout) -> str:
    """Where a swizzle stores a chunk. [analysis/elements.py, byte_of]"""
    rows, chunks = 128 // layout.swizzle, layout.swizzle // 16
    row = "r" if rows == 1 else f"(r / {rows})"
    return f": 16-byte chunk c of row r is at c ^ {row} % {chunks}"


def rows_about(layout: SharedLayout) -> str:
    """How rows are stored: in panels as wide as the swizzle, where they are wider."""
    row, rows = layout.row_bytes, layout.rows_interleaved
    if rows > 1:
        run, columns = rows * layout.element_bits // 8, layout.extents[-1]
        return (
            f"{layout}, as an MFMA takes them along K: rows {rows} q to {rows} q + {rows - 1} of column n are the "
            f"{run} bytes from {run} * ({columns} * q + n) on, but the tile's 16-byte chunk c is at c ^ ((c / 8) % 4)"
        )
    if len(layout.extents) == 1:
        return f"stored as rows of {layout.swizzle} bytes, {layout}"
    if layout.swizzle and row > layout.swizzle:
        return f"{row // layout.swizzle} slabs of {layout.swizzle * 8 // layout.element_bits} columns, {layout}"
    return f"rows of {row} bytes, {layout}"


def place_of(name: str, overlay: Aliasing, names: Names) -> str:
    """Where a tile is in the struct of shared memory."""
    return ".".join((f"{SHARED}<Shared>()", *_parts_around(name, overlay.parts, names), names(name)))


def type_place_of(name: str, overlay: Aliasing, names: Names) -> str:
    """A tile as a member of the struct's type."""
    return f"{struct_of(name, overlay, names)}::{names(name)}"


def struct_of(name: str, overlay: Aliasing, names: Names) -> str:
    """The type that has a tile as a member."""
    return "::".join(("Shared", *(type_of(part) for part in _parts_around(name, overlay.parts, names))))


def _parts_around(name: str, parts: tuple[Part, ...], names: Names) -> list[str]:
    """The part that the tile belongs to, if there is one."""
    return [part_name(number, len(parts), names) for number, part in enumerate(parts) if name in part.tiles]


def part_name(number: int, count: int, names: Names) -> str:
    """The member that one of `count` parts of shared memory is."""
    return names(f"__{('early', 'late')[number]}" if count == 2 else f"__part_{number + 1}")


def type_of(member: str) -> str:
    """The type of such a member."""
    return "".join(word.capitalize() for word in member.split("_"))


def overlaid(
    found: shared.Overlaid, names: Names, declared: Callable[[shared.SharedTile], Iterable[Declaration]]
) -> Iterator[Declaration]:
    """A struct for each part of the tiles that share memory, and their union; `declared` declares a tile."""
    members = [part_name(number, len(found.parts), names) for number in range(len(found.parts))]
    for member, (part, tiles) in zip(members, found.parts, strict=True):
        lines = "-".join(map(str, dict.fromkeys((part.first_line, part.last_line))))
        yield Declaration(f"struct {type_of(member)} {{", (f"in use in {found.file}:{lines}",))
        for tile in tiles:
            yield from declared(tile)
        yield Declaration("};")
    about = "shared-memory aliasing: never live at the same time; a barrier separates their uses"
    yield Declaration("union {", tuple(wrapped(f"{about}  [{found.rule}]")))
    yield from (Declaration(f"{type_of(member)} {member};") for member in members)
    yield Declaration("};")
