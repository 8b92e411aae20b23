"""What a style prints: flat, frozen, strings and tuples only."""

from collections.abc import Mapping

from msgspec import field

from tile2cu.core.record import Record
from tile2cu.styles.base.comments import Place


class StatementView(Record, frozen=True):
    """One statement: `kind` names the macro that prints it, `parts` are the texts it prints.

    `comments` are printed above it, `notes` and `declared` further down where the macro states; `line` is the Python
    line it comes from, 0 for none; `gap` asks for an empty line before it.
    """

    kind: str
    parts: Mapping[str, str]
    line: int = 0
    comments: tuple[str, ...] = ()
    body: tuple["StatementView", ...] = ()
    orelse: tuple["StatementView", ...] = ()
    notes: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    gap: bool = False


def text_line(text: str, place: int = 0, comments: tuple[str, ...] = ()) -> StatementView:
    """A line of text; `place` is the Python line that it comes from."""
    return StatementView("line", {"text": text}, place, comments)


class Declaration(Record, frozen=True):
    """A line of text with the comments above it, and the sizes that it `declares`."""

    text: str
    comments: tuple[str, ...] = ()
    declares: tuple[str, ...] = ()


class Section(Record, frozen=True):
    """A titled group of declarations."""

    title: str
    declarations: tuple[Declaration, ...]


NO_SECTION = Section("", ())


class Limit(Record, frozen=True, kw_only=True):
    """Conditions in C++, of which none may hold; `stated` is what must hold instead, in words."""

    conditions: tuple[str, ...]
    comment: str
    stated: str


class KernelParts(Record, frozen=True, kw_only=True):
    """What a style writes of one kernel, and of the types that it depends on.

    `maps` are the functions that make tensor maps. `producer` comes before the fragments: the producer warp's part. In
    a persistent kernel `each_tile` is what a tile begins with, `counted` what counts its iterations, and `end`
    what comes behind the last tile. `work` are the structs of what a tile scheduler publishes, `work_type` declares a
    variable of it, and `next_tile` is the call that gives the block's next tile where the schedule is dynamic. All
    threads do `start` first. `own_layouts` are shared tiles that the style stores as it, not a rule, decides:
    in words. `tv_layouts`: comments have some, in CuTe's notation. `on_host` are the names that compilations for the
    host see, where they see no bodies. `places` are the Python lines that comments on statements name. Tiles take
    `registers` of a thread; a GEMM has `operands` more of what it has read from LDS.
    """

    shared: Section
    shared_bytes: int
    registers: int
    layouts: Section
    setup: tuple[Declaration, ...]
    fragments: tuple[Declaration, ...]
    body: tuple[StatementView, ...]
    maps: Section = NO_SECTION
    producer: tuple[StatementView, ...] = ()
    each_tile: tuple[StatementView, ...] = ()
    counted: str = ""
    work: tuple[Declaration, ...] = ()
    work_type: str = ""
    next_tile: str = ""
    start: tuple[StatementView, ...] = ()
    end: tuple[StatementView, ...] = ()
    own_layouts: Mapping[str, str] = field(default_factory=dict)
    operands: int = 0
    places: tuple[Place, ...] = ()
    tv_layouts: bool = False
    on_host: frozenset[str] = frozenset()
