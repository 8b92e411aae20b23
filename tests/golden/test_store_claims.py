"""What emitted sources state of stores of accumulators, computed again from the layouts in their comments."""

import ast
import re
from itertools import product
from pathlib import Path

import pytest

from tests.golden.source_text import KernelText, Source, arguments
from tests.golden.test_claims import TL

STATED = re.compile(
    r"each lane stores (\d+) x (\d+) bytes(, where rows are aligned, else single elements)?; (\d+) lanes store (\d+) "
    r"consecutive bytes(?:, (a|half a) sector's size,)? in each of (\d+) rows"
)
LAYOUT = re.compile(r"-> \((\d+), (\d+)\);.* TV layout (\(\([^:]*\)):(\(\([^:]*\)\))(?: |$)")
NAMED = re.compile(r"^// layout of ([\w, \n/]+?):\n((?:// .*\n)+?)using (\w+) = tl::(\w+)<", re.M)
CALL = re.compile(r"((?:^ *//.*\n)*)^ *tl::copy(?=\()", re.M)
ACCUMULATORS = ("MmaAccumulator", "WgmmaAccumulator")
Places = list[list[tuple[int, int]]]  # of each lane of warp 0: (row, column) of each value


def layouts(head: str) -> dict[str, tuple[str, str]]:
    """The kind of the layout of each fragment, and what is said of it."""
    found: dict[str, tuple[str, str]] = {}
    said: dict[str, str] = {}
    for names, about, alias, kind in NAMED.findall(head):
        same = re.search(r"here the same as (\w+):", about)
        said[alias] = said[same[1]] if same else about.replace("\n// ", " ")
        found.update(dict.fromkeys(re.findall(r"\w+", names), (kind, said[alias])))
    return found


def places_of(about: str) -> Places:
    """Where the values of each lane of a warp are, by the layout's (thread, value) -> offset."""
    found = LAYOUT.search(about.strip())
    assert found is not None, about
    rows, (shape, strides) = int(found[1]), (ast.literal_eval(found[n]) for n in (3, 4))

    def offsets(of: int) -> list[int]:
        digits = product(*(range(extent) for extent in reversed(shape[of])))
        return [sum(digit * stride for digit, stride in zip(each[::-1], strides[of], strict=True)) for each in digits]

    threads, values = offsets(0), offsets(1)
    return [[divmod(thread + each, rows)[::-1] for each in values] for thread in threads[:32]]


def lanes_of_a_row(places: Places, run: int) -> tuple[int, int]:
    """How many lanes of a warp store neighbouring runs to one row with their first store, and to how many rows."""
    rows: dict[int, list[int]] = {}
    for lane in places:
        assert [column - lane[0][1] for _, column in lane[:run]] == [*range(run)] and len(
            {r for r, _ in lane[:run]}
        ) == 1
        rows.setdefault(lane[0][0], []).append(lane[0][1])
    (columns,) = {tuple(sorted(each)) for each in rows.values()}
    assert columns == tuple(range(columns[0], columns[0] + run * len(columns), run))
    return len(columns), len(rows)


def stores(kernel: KernelText) -> list[tuple[str, str, str]]:
    """The fragment, the tensor and the comment of each copy of an accumulator to a tensor; not those instead of TMA."""
    kinds, views = layouts(kernel.head), {view.name for view in kernel.views()}
    found = []
    for call in CALL.finditer(kernel.body):
        source, to, *_ = arguments(kernel.body, call.end())
        tensor = re.match(r"\w+", to)
        if kernel.body[: call.start()].rstrip().endswith("} else {"):
            continue
        if kinds.get(source, ("", ""))[0] in ACCUMULATORS and tensor is not None and tensor[0] in views:
            found.append((source, tensor[0], re.sub(r"\s*\n?\s*// ", " ", call[1])))
    return found


@pytest.mark.parametrize("path", [path for path in TL if path.suffix == ".cu"], ids=str)
def test_lanes_store_the_bytes_that_are_stated(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        found = stores(kernel)
        assert len(STATED.findall(re.sub(r"\s*\n?\s*// ", " ", kernel.body))) >= len(found)
        kinds, views = layouts(kernel.head), {view.name: view for view in kernel.views()}
        for fragment, tensor, about in found:
            stated = STATED.search(about)
            assert stated is not None, (fragment, tensor)
            count, width, lanes, span, rows = (int(stated[n]) for n in (1, 2, 4, 5, 7))
            view, places = views[tensor], places_of(kinds[fragment][1])
            assert width % view.element == 0 and count * width == len(places[0]) * view.element
            assert (lanes, rows) == lanes_of_a_row(places, width // view.element) and span == lanes * width
            assert {32: "a", 16: "half a"}.get(span, "") == (stated[6] or "")
            assert (view.alignment is None) == bool(stated[3])
            assert width <= (view.alignment or kernel.instance)


def test_the_parts_of_a_hybrid_gemm_are_stored_by_sectors() -> None:
    (path,) = (path for path in TL if path.parts[-2:] == ("sm_90a", "gemm_hybrid.cu"))
    found = stores(Source.of(path.read_text(encoding="utf-8")).kernels[0])
    assert [(source, tensor) for source, tensor, _ in found] == [("C_local", "parts")]
