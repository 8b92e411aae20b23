"""One self-contained page about kernels: sources side by side, decisions with their reasons, and pictures."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from msgspec.structs import replace

from tile2cu.analysis.uses import statements
from tile2cu.core.choice import named
from tile2cu.core.errors import Tile2CuWarning
from tile2cu.core.layout import FragmentLayout, SharedLayout
from tile2cu.core.program import Loop
from tile2cu.core.record import Record
from tile2cu.emitter import Resolved
from tile2cu.explain import Explained, RejectedCandidate, find_rule, in_words
from tile2cu.review.accesses import TileAccess, accesses_of, ways
from tile2cu.review.code import cpp_lines, origins, python_lines
from tile2cu.review.compare import Comparison
from tile2cu.review.dataflow import dataflow_picture
from tile2cu.review.execution import Access
from tile2cu.review.kernel import Kernel, compiled_figures, decided_figures, numerics
from tile2cu.review.layouts import TileLayout, layouts_of
from tile2cu.review.memory_map import memory_picture
from tile2cu.review.pictures import warp_picture
from tile2cu.review.raster import order_in_words, raster_picture
from tile2cu.review.summary import cards
from tile2cu.review.timeline import timeline, timeline_picture
from tile2cu.rules.rewrites import REWRITES

_TEMPLATES = Path(__file__).parent / "templates"
_WINDOW = (16, 32)  # rows and columns of a fragment's picture
_SHARED_WINDOW = (16, 64)  # a swizzle repeats after eight rows
_TENTHS = 10  # microseconds that are printed with one decimal
_PARAGRAPH = re.compile(r"\n\n|\n(?=(?:Shapes|Gives|Errors): )")
_CODE = re.compile(r"`([^`]+)`")
_SECTIONS = (
    ("sources", "Sources"),
    ("pipeline", "Pipeline"),
    ("memory", "Shared memory"),
    ("dataflow", "Dataflow"),
    ("order", "Order of tiles"),
    ("layouts", "Layouts"),
    ("resources", "Resources"),
    ("numerics", "Numerics"),
    ("bound", "Bound by"),
    ("tuning", "Tuning"),
    ("run", "Checks and accesses"),
    ("warnings", "Warnings"),
    ("rejected", "Not possible"),
)


class _Line(Record, frozen=True, kw_only=True):
    """A line of a source as HTML, the Python line that it belongs to, and the line of the other source to go to."""

    number: int
    html: Markup
    py: int
    to: int
    places: tuple[Explained, ...] = ()
    warnings: tuple[Tile2CuWarning, ...] = ()
    accesses: tuple[Access, ...] = ()


class _Tiles(Record, frozen=True, kw_only=True):
    """Tiles of one layout, with its picture: their names, the lines that declare them, and who accesses each.

    `layout` is the first one's; `pass_` states what an MMA reads in one pass.
    """

    names: str
    lines: tuple[int, ...]
    layout: TileLayout
    picture: Markup
    warps: Markup
    pass_: str
    wide: bool
    accesses: tuple[tuple[str, tuple[TileAccess, ...]], ...]


def page(kernels: Sequence[Kernel], *, comparisons: Sequence[Comparison] = ()) -> str:
    """The page of one or more kernels of a file, and of comparisons between kernels."""
    rules = {rule: _about(rule) for kernel in kernels for rule in _rules(kernel)}
    return (
        _environment()
        .get_template("review.html.jinja")
        .render(
            file=kernels[0].launches[0].program.source.name,
            kernels=[_view(kernel, frozenset(rules)) for kernel in kernels],
            sections=_SECTIONS,
            comparisons=comparisons,
            rules=sorted(rules.items()),
            style=Markup(_static("review.css")),
            script=Markup(_static("review.js")),
        )
    )


def _static(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=True,
    )
    environment.filters["in_words"] = in_words
    environment.filters["named"] = named
    environment.filters["us"] = lambda us: f"{us:.1f} us" if us >= _TENTHS else f"{us:.2f} us"
    return environment


def _rules(kernel: Kernel) -> Iterator[str]:
    """The rules that decided something."""
    for place in kernel.decisions:
        yield from (one.rule for one in place.chosen if one.rule)
        yield from (other.rule for other in place.refused)


def _about(rule: str) -> dict[str, Any]:
    """What a rule or a rewrite does, in paragraphs, and the source of the hardware fact."""
    found = find_rule(rule)
    rewrite = REWRITES.get(rule)
    doc = found.doc if found is not None else (rewrite.__doc__ or "") if rewrite is not None else ""
    paragraphs = [_marked_up(each) for each in _PARAGRAPH.split(cleandoc(doc))]
    return {"doc": paragraphs, "source": found.source if found is not None else ""}


def _marked_up(paragraph: str) -> Markup:
    """A paragraph of a docstring, with its code marked."""
    return Markup(_CODE.sub(r"<code>\1</code>", escape(paragraph, quote=False)))


def _view(kernel: Kernel, rules: frozenset[str]) -> dict[str, Any]:
    """All that the template shows of a kernel."""
    python, emitted = _sources(kernel, rules)
    source = kernel.launches[0].program.source
    return {
        "label": kernel.label,
        "name": kernel.manifest["kernel"],
        "target": kernel.manifest["target"],
        "suffix": kernel.launches[0].target.suffix,
        "cards": list(cards(kernel)),
        "python": python,
        "emitted": emitted,
        "tiles": list(_tiles(kernel)),
        "charts": list(_charts(kernel)),
        "maps": _pictures(kernel, memory_picture),
        "rasters": [
            (each.namespace, order_in_words(each), Markup(image))
            for each in kernel.launches
            if (image := raster_picture(each))
        ],
        "flows": _pictures(kernel, dataflow_picture),
        "figures": list(decided_figures(kernel)),
        "numerics": list(numerics(kernel)),
        "not_compiled": kernel.not_compiled,
        "compiled": list(_compiled(kernel)),
        "compiler_warnings": kernel.compiled.warnings if kernel.compiled is not None else (),
        "bound": kernel.bound,
        "tuned": kernel.tuned,
        "tuned_is_current": kernel.tuned is not None and kernel.tuned.sha256 == source.sha256,
        "run": kernel.run,
        "warnings": kernel.warnings,
        "rejected": _rejected(kernel),
    }


def _pictures(kernel: Kernel, plot: Callable[[Resolved], str]) -> list[tuple[str, Markup]]:
    """The picture of each launch that has one."""
    return [(each.namespace, Markup(image)) for each in kernel.launches if (image := plot(each))]


def _compiled(kernel: Kernel) -> Iterator[dict[str, Any]]:
    """The figures of each compiled kernel, and its instructions by class."""
    reports = kernel.compiled.kernels if kernel.compiled is not None else ()
    for (name, found), each in zip(compiled_figures(kernel), reports, strict=True):
        counts = each.compiled.instructions
        numbers = [count for _, count in counts]
        texts = {figure.name: figure.text for figure in found}
        yield {"name": name, "figures": texts, "counts": counts, "total": sum(numbers), "most": max(numbers, default=1)}


def _sources(kernel: Kernel, rules: frozenset[str]) -> tuple[list[_Line], list[_Line]]:
    """The Python file and the emitted source, line by line, each with the line of the other that it belongs to."""
    python = kernel.launches[0].program.source.name
    tiles = {tile.name: tile.span.line for resolved in kernel.launches for tile in resolved.launch.tiles}
    of = origins(kernel.source, kernel.manifest["lines"], python, tiles)
    first: dict[int, int] = {}
    for number, line in enumerate(of, 1):
        first.setdefault(line, number)
    emitted = [
        _Line(number=number, html=Markup(html), py=line, to=line)
        for number, (html, line) in enumerate(zip(cpp_lines(kernel.source, rules), of, strict=True), 1)
    ]
    return list(_python(kernel, first)), emitted


def _python(kernel: Kernel, first: dict[int, int]) -> Iterator[_Line]:
    places = kernel.decisions
    for number, html in enumerate(python_lines(kernel.python), 1):
        yield _Line(
            number=number,
            html=Markup(html),
            py=number,
            to=first.get(number, 0),
            places=tuple(place for place in places if place.line == number),
            warnings=tuple(each for each in kernel.warnings if each.span.line == number),
            accesses=tuple(each for each in kernel.run.accesses if each.line == number) if kernel.run else (),
        )


def _tiles(kernel: Kernel) -> Iterator[_Tiles]:
    """The tiles, those of one layout together."""
    together: dict[tuple[object, ...], list[TileLayout]] = {}
    for name, layout in layouts_of(kernel.launches).items():
        named_layout = replace(layout, name=name)
        key = (name.rpartition("::")[0], layout.layout, layout.rule, layout.read_together)
        together.setdefault(key, []).append(named_layout)
    used = _uses(kernel)
    for tiles in together.values():
        yield _one_layout(tiles, used)


def _uses(kernel: Kernel) -> dict[str, tuple[TileAccess, ...]]:
    """The accesses to each tile, by its name on the page."""
    return {
        f"{resolved.namespace}::{tile.name}" if resolved.namespace else tile.name: accesses_of(tile, resolved)
        for resolved in kernel.launches
        for tile in resolved.launch.tiles
    }


def _one_layout(tiles: list[TileLayout], used: dict[str, tuple[TileAccess, ...]]) -> _Tiles:
    names = ", ".join(tile.name for tile in tiles)
    first = replace(tiles[0], name=names)
    of = first.layout
    rows, cols = _WINDOW if isinstance(of, FragmentLayout) else _SHARED_WINDOW
    return _Tiles(
        names=names,
        lines=tuple(dict.fromkeys(tile.line for tile in tiles)),
        layout=first,
        picture=Markup(first.plot(rows=rows, cols=cols).svg),
        warps=Markup(warp_picture(names, of) if isinstance(of, FragmentLayout) else ""),
        pass_=_pass(first),
        wide=isinstance(of, SharedLayout) or len(of.shape) > 1,
        accesses=tuple((tile.name, used[tile.name]) for tile in tiles if used[tile.name]),
    )


def _pass(tile: TileLayout) -> str:
    """What an MMA reads of a shared tile in one pass, and whether that is free of bank conflicts."""
    if not tile.read_together or not isinstance(tile.layout, SharedLayout):
        return ""
    degree = ways(tile.layout, tile.read_together, tile.banks)
    conflicts = "no bank conflict" if degree == 1 else f"{degree}-way bank conflicts"
    return f"Outlined: {tile.read_together} rows of 16 bytes that the MMA's loads read in one pass, with {conflicts}."


def _charts(kernel: Kernel) -> Iterator[tuple[str, Markup]]:
    text = dict(enumerate(kernel.python.splitlines(), 1))
    for resolved in kernel.launches:
        loops = statements(resolved.launch.body, Loop)
        for loop in loops:
            chart = timeline(loop, resolved)
            if chart is not None:
                yield resolved.namespace, Markup(timeline_picture(chart, text))


def _rejected(kernel: Kernel) -> list[tuple[Explained, RejectedCandidate]]:
    """What was not possible, with the edit that would allow it."""
    return [(place, other) for place in kernel.decisions for other in place.refused]
