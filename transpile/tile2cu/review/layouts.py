"""The layouts of a kernel's tiles, by name, as objects that plot themselves."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

from tile2cu.core.decisions import LAYOUT, SHARED_LAYOUT
from tile2cu.core.layout import FragmentLayout, SharedLayout
from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.emitter import Resolved
from tile2cu.files import write_files
from tile2cu.review.accesses import rows_read_together
from tile2cu.review.pictures import WHOLE, Window, fragment_picture, shared_picture
from tile2cu.styles.base.layouts import described


class Picture(Record, frozen=True):
    """An image as SVG text. Notebooks show it."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Writes the file and returns its path. Errors: T2C-C005."""
        (written,) = write_files({Path(path).name: self.svg}, Path(path).parent)
        return written


class TileLayout(Record, frozen=True, kw_only=True):
    """The layout of one tile: a fragment's, or a shared tile's in so many `banks`. `rule` decided it.

    `line` is the one of the Python file that declares the tile. `read_together` are the rows of 16 bytes of a shared
    tile that an MMA reads in one pass, where one does.
    """

    name: str
    layout: FragmentLayout | SharedLayout
    banks: int
    rule: str
    line: int
    read_together: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """In elements."""
        return self.layout.shape if isinstance(self.layout, FragmentLayout) else self.layout.extents

    def __str__(self) -> str:
        return described(self.layout) if isinstance(self.layout, FragmentLayout) else str(self.layout)

    def plot(self, path: str | Path | None = None, *, rows: int | None = None, cols: int | None = None) -> Picture:
        """The layout as a picture: all elements, or the first `rows` and `cols`; also written to `path`, if given.

        Errors: T2C-C005 when the file cannot be written.
        """
        picture = Picture(self._svg(Window(rows=rows, cols=cols)))
        if path is not None:
            picture.save(path)
        return picture

    def _repr_html_(self) -> str:
        return self._svg(WHOLE)

    def _svg(self, window: Window) -> str:
        if isinstance(self.layout, FragmentLayout):
            return fragment_picture(self.name, self.layout, window)
        return shared_picture(self.name, self.layout, self.banks, window, self.read_together)


class Layouts(Mapping[str, TileLayout]):
    """The layouts of a kernel's tiles by name, computed when one is first asked for."""

    def __init__(self, find: Callable[[], Mapping[str, TileLayout]]) -> None:
        self._find = find

    @cached_property
    def _found(self) -> Mapping[str, TileLayout]:
        return self._find()

    def __getitem__(self, name: str) -> TileLayout:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.values())


def layouts_of(launches: tuple[Resolved, ...]) -> dict[str, TileLayout]:
    """The layouts of all tiles; those of a kernel with several launches are named as NAMESPACE::TILE."""
    return {
        f"{resolved.namespace}::{tile.name}" if resolved.namespace else tile.name: found
        for resolved in launches
        for tile in resolved.launch.tiles
        if (found := _layout(tile, resolved)) is not None
    }


def _layout(tile: Buffer, resolved: Resolved) -> TileLayout | None:
    for key in (LAYOUT, SHARED_LAYOUT):
        if resolved.facts.get(tile, key) is not None:
            fact = resolved.facts.fact(tile, key)
            return TileLayout(
                name=tile.name,
                layout=fact.value,
                banks=resolved.target.banks,
                rule=fact.rule,
                line=tile.span.line,
                read_together=rows_read_together(tile, resolved),
            )
    return None
