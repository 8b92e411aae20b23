"""Hand-written SVG: elements as text, the same bytes for the same input."""

from collections.abc import Iterable
from html import escape

CELL = 16  # pixels of an element's side
FONT = 10
# Light enough for black letters in both colour schemes; neighbours differ in hue and in lightness.
PALETTE = ("#9ecbff", "#ffc98a", "#a8e6a1", "#ffaaa6", "#d3b8f8", "#f5e58a", "#8fe0dc", "#f6b3d8")
# The page's colours where the picture is part of a page; on its own, those of the viewer's scheme.
_STYLE = (
    "text{font:10px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#111}.axis,.note{fill:#57606a}"
    ".note{font-size:12px}rect,circle{stroke:#57606a;stroke-width:.5}.line{stroke:#8c959f}"
    "@media (prefers-color-scheme:dark){.axis,.note{fill:#a3adb8}}"
)


def colour(index: int) -> str:
    """The colour of a warp, or of a group of banks."""
    return PALETTE[index % len(PALETTE)]


def rect(x: float, y: float, width: float, height: float, *, fill: str, title: str = "", **data: object) -> str:
    """A rectangle; `title` is what a pointer over it shows, `data` become data attributes."""
    more = "".join(f' data-{name}="{escape(str(value))}"' for name, value in data.items())
    box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{more}'
    return f"<rect {box}><title>{escape(title)}</title></rect>" if title else f"<rect {box}/>"


def text(x: float, y: float, content: object, *, kind: str = "", middle: bool = False, turned: int = 0) -> str:
    """A line of text, `turned` by so many degrees."""
    named = f' class="{kind}"' if kind else ""
    anchor = ' text-anchor="middle"' if middle else ""
    turn = f' transform="rotate({turned} {x:g} {y:g})"' if turned else ""
    return f'<text x="{x:g}" y="{y:g}"{named}{anchor}{turn}>{escape(str(content))}</text>'


def cut(content: str, letters: int) -> str:
    """A text of so many letters at most, with an ellipsis where it is cut."""
    return content if len(content) <= letters else f"{content[: letters - 1]}…"


def picture(width: float, height: float, parts: Iterable[str], *, title: str, about: str) -> str:
    """The whole image: `title` is its accessible name, `about` its description."""
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(about)}</desc>",
        f"<style>{_STYLE}</style>",
        *parts,
        "</svg>",
    )
    return "\n".join(lines) + "\n"


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers in words: `0-3, 8, 12`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
