"""What emitted sources claim of themselves, computed again from nothing but their text."""

from pathlib import Path

import pytest

from tests.golden.source_text import KernelText, Source, Values, View, value

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path
    for path in (*ROOT.glob("emitted/**/*.*"), *ROOT.glob("tests/engine/kernels/*.cu"))
    if path.suffix in (".cu", ".hip")
)


@pytest.mark.parametrize("path", [path for path in SOURCES if "cute" not in path.parts], ids=str)
def test_rows_and_tiles_are_aligned_as_claimed(path: Path) -> None:
    source = Source.of(path.read_text(encoding="utf-8"))
    for kernel in source.kernels:
        for view in kernel.views():
            asked = view.alignment is None
            runs = list(source.executions(kernel, 60, aligned=asked))
            claimed = view.alignment or 16
            starts = [start for values in runs for start in starts_of(view, kernel, values)]
            assert not [start for start in starts if start % claimed], f"{view.name}: not all at multiples of {claimed}"
            weak = claimed < 16 and any(kernel.tiles(view)) and not any(start % (2 * claimed) for start in starts)
            assert not weak, f"{view.name}: all that is copied starts at multiples of {2 * claimed} bytes"


def starts_of(view: View, kernel: KernelText, values: Values) -> list[int]:
    """The distances of rows, and where tiles start in them, in bytes."""
    starts = view.row_strides(values)
    starts += [int(value(column, values)) for column in kernel.tiles(view)]
    return [start * view.element for start in starts]
