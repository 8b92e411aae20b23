"""One self-contained page about kernels: sources side by side, decisions with their reasons, and pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from tile2cu.analysis.uses import statements
from tile2cu.core.errors import Tile2CuWarning
from tile2cu.core.layout import FragmentLayout
from tile2cu.core.program import Loop
from tile2cu.explain import Explained, RejectedCandidate, find_rule, in_words
from tile2cu.review.code import cpp_lines, origins, python_lines
from tile2cu.review.compare import Comparison
from tile2cu.review.dataflow import dataflow_picture
from tile2cu.review.execution import Execution
from tile2cu.review.kernel import Kernel, figures
from tile2cu.review.layouts import TileLayout, layouts_of
from tile2cu.review.memory_map import memory_picture
from tile2cu.review.pictures import warp_picture
from tile2cu.review.raster import raster_picture
from tile2cu.review.timeline import timeline, timeline_picture
from tile2cu.rules import REWRITES

_TEMPLATES = Path(__file__).parent / "templates"
_WINDOW = (16, 32)  # rows and columns of a fragment's picture
_SHARED_WINDOW = (16, 64)  # a swizzle repeats after eight rows


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A line of a source as HTML, the Python line that it belongs to, and the line of the other source to go to."""

    number: int
    html: Markup
    py: int
    to: int
    places: tuple[Explained, ...] = ()
    warnings: tuple[Tile2CuWarning, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Tile:
    """A tile with its picture; `cut` where only the first rows and columns are shown."""

    name: str
    layout: TileLayout
    picture: Markup
    warps: Markup


def page(
    kernels: Sequence[Kernel],
    *,
    resources: Sequence[str],
    comparisons: Sequence[Comparison] = (),
    executions: Sequence[Execution | None] = (),
) -> str:
    """The page. `resources` are the compilers' reports, one per kernel, empty where a kernel is not compiled;
    `executions` the runs on the CPU engine, where there are any.
    """
    rules = {rule: _about(rule) for kernel in kernels for rule in _rules(kernel)}
    runs = executions or [None] * len(kernels)
    views = [
        _view(kernel, report, run, frozenset(rules))
        for kernel, report, run in zip(kernels, resources, runs, strict=True)
    ]
    return (
        _environment()
        .get_template("review.html.jinja")
        .render(
            file=kernels[0].launches[0].program.source.name,
            kernels=views,
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
    return environment


def _rules(kernel: Kernel) -> Iterator[str]:
    """The rules that decided something."""
    for place in kernel.decisions:
        yield from (one.rule for one in place.chosen if one.rule)
        yield from (other.rule for other in place.refused)


def _about(rule: str) -> dict[str, str]:
    """What a rule or a rewrite does, and the source of the hardware fact."""
    found = find_rule(rule)
    if found is not None:
        return {"doc": cleandoc(found.doc), "source": found.source}
    rewrite = REWRITES.get(rule)
    return {"doc": cleandoc(rewrite.__doc__ or "") if rewrite is not None else "", "source": ""}


def _view(kernel: Kernel, report: str, run: Execution | None, rules: frozenset[str]) -> dict[str, Any]:
    """All that the template shows of a kernel."""
    python, emitted = _sources(kernel, rules)
    return {
        "label": kernel.label,
        "name": kernel.manifest["kernel"],
        "target": kernel.manifest["target"],
        "suffix": kernel.launches[0].target.suffix,
        "python": python,
        "emitted": emitted,
        "tiles": [_tile(name, layout) for name, layout in layouts_of(kernel.launches).items()],
        "charts": list(_charts(kernel)),
        "maps": [(each.namespace, Markup(memory_picture(each))) for each in kernel.launches if memory_picture(each)],
        "facts": list(figures(kernel)),
        "report": report,
        "run": run,
        "rasters": [(each.namespace, Markup(raster_picture(each))) for each in kernel.launches if raster_picture(each)],
        "flows": [(each.namespace, Markup(dataflow_picture(each))) for each in kernel.launches],
        "warnings": kernel.warnings,
        "rejected": _rejected(kernel),
    }


def _sources(kernel: Kernel, rules: frozenset[str]) -> tuple[list[_Line], list[_Line]]:
    """The Python file and the emitted source, line by line, each with the line of the other that it belongs to."""
    python = kernel.launches[0].program.source.name
    tiles = {tile.name: tile.span.line for settled in kernel.launches for tile in settled.launch.tiles}
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
        )


def _tile(name: str, layout: TileLayout) -> _Tile:
    of = layout.layout
    rows, cols = _WINDOW if isinstance(of, FragmentLayout) else _SHARED_WINDOW
    warps = warp_picture(name, of) if isinstance(of, FragmentLayout) else ""
    picture = Markup(layout.plot(rows=rows, cols=cols).svg)
    return _Tile(name=name, layout=layout, picture=picture, warps=Markup(warps))


def _charts(kernel: Kernel) -> Iterator[Markup]:
    text = dict(enumerate(kernel.python.splitlines(), 1))
    for settled in kernel.launches:
        loops = statements(settled.launch.body, Loop)
        for loop in loops:
            chart = timeline(loop, settled)
            if chart is not None:
                yield Markup(timeline_picture(chart, text))


def _rejected(kernel: Kernel) -> list[tuple[Explained, RejectedCandidate]]:
    """What was not possible, with the edit that would allow it."""
    return [(place, other) for place in kernel.decisions for other in place.refused]
