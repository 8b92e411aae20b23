"""The style ck's distributions: each element has the thread and register that the fragment's layout gives it."""

from __future__ import annotations

import functools
import re
from itertools import product
from types import CodeType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile2cu.analysis.elements import byte_of, element
from tile2cu.core.dtype import FLOAT16
from tile2cu.core.expr import int_const
from tile2cu.core.layout import Blocked, FragmentLayout, Replicated, SharedLayout, Warps, slice_of
from tile2cu.core.mfma_layout import WAVE, MfmaAccumulator, MfmaOperandA, MfmaTile
from tile2cu.core.program import Buffer, Scope
from tile2cu.core.span import Span
from tile2cu.styles.ck.encodings import (
    Encoding,
    copy_of_rows,
    encoding_of,
    operand_a,
    operand_b,
    transposing_copy,
)
from tile2cu.styles.ck.shared import ByColumns, address_in_rows

SMALL = st.sampled_from((1, 2, 4))


def check(layout: FragmentLayout, encoding: Encoding) -> None:
    """ck_tile's rule against the layout's own; what is beyond the tile's edge in one is so in the other."""
    assert encoding.registers == layout.registers
    # every eleventh thread: each digit of lanes and warps takes all its values
    for thread, register in product(range(0, layout.threads_of_block, 11), range(layout.registers)):
        found, expected = encoding.element(*divmod(thread, WAVE), register), element(layout, thread, register)
        if expected is None:
            assert any(at >= extent for at, extent in zip(found, layout.shape, strict=True))
        else:
            assert found == expected


@settings(max_examples=12)
@given(size=st.sampled_from((16, 32)), m=SMALL, n=SMALL, rows=st.sampled_from((1, 2)), groups=SMALL, interleave=SMALL)
def test_accumulators(size: int, m: int, n: int, rows: int, groups: int, interleave: int) -> None:
    layout = MfmaAccumulator(size * m * rows, size * n * groups * interleave, Warps(m, n), interleave, size)
    encoding = encoding_of(layout)
    assert encoding is not None and encoding.shape == layout.shape and not encoding.rs
    check(layout, encoding)
    for kept in ((0,), (1,)):
        part = slice_of(layout, kept)
        assert part is not None
        of_part = encoding_of(part)
        assert of_part is not None
        check(part, of_part)


@settings(max_examples=8)
@given(m=SMALL, n=SMALL, run=st.sampled_from((4, 8)))
def test_operands_in_registers(m: int, n: int, run: int) -> None:
    layout = MfmaOperandA(16 * m, 64, Warps(m, n), run=run)
    encoding = encoding_of(layout)
    assert encoding is not None
    check(layout, encoding)


@settings(max_examples=10)
@given(
    grid=st.sampled_from(((2, 64), (4, 64), (8, 32), (128, 2), (1, 256), (64, 1), (2, 16), (1, 4))),
    repeats=st.tuples(st.sampled_from((1, 2, 3)), st.sampled_from((1, 2, 5))),
    vector=SMALL,
    rows=st.sampled_from((1, 2)),
    cut=st.integers(0, 3),
    blocks=st.sampled_from((64, 128, 256)),
)
def test_grids_of_threads(
    grid: tuple[int, int], repeats: tuple[int, int], vector: int, rows: int, cut: int, blocks: int
) -> None:
    threads = max(blocks, grid[0] * grid[1])
    extents = (grid[0] * repeats[0] * rows, grid[1] * repeats[1] * vector - cut % vector)
    layout = Blocked(extents, grid, vector, threads, rows, warp_size=WAVE)
    encoding = encoding_of(layout)
    assert encoding is not None
    check(layout, encoding)
    part = slice_of(layout, (0,))
    assert part is not None
    of_part = encoding_of(part)
    assert of_part is not None
    check(part, of_part)


@pytest.mark.parametrize(
    "layout",
    [
        Replicated((4,), 128),
        Blocked((8, 96), (16, 24), 4, 384, warp_size=WAVE),  # 24 lanes: no product of digits
        Blocked((32,), (32,), 1, 32, warp_size=WAVE),  # half a wave
    ],
    ids=str,
)
def test_layouts_without_an_encoding(layout: FragmentLayout) -> None:
    assert encoding_of(layout) is None


ACCUMULATORS = [
    MfmaAccumulator(128, 128, Warps(2, 2), 4),
    MfmaAccumulator(64, 64, Warps(4, 1)),
    MfmaAccumulator(64, 128, Warps(2, 2), 2, 32),
]


@pytest.mark.parametrize("layout", ACCUMULATORS, ids=str)
@pytest.mark.parametrize("k_first", [False, True])
@pytest.mark.parametrize("pack", [4, 8])
def test_operands_multiply_to_the_accumulator(layout: MfmaTile, k_first: bool, pack: int) -> None:
    """An instruction's line of A and of B is the row and column that its lane holds of C, in the same order of K."""
    k = 64
    a, b = operand_a(layout, k, pack, k_first=k_first), operand_b(layout, k, pack, k_first=k_first)
    c = encoding_of(layout)
    assert a is not None and b is not None and c is not None
    order = -1 if k_first else 1
    steps, size = k * layout.size // 64, layout.size
    groups = layout.cols // (layout.warps.n * size * layout.interleave)
    for warp, lane, step in product(range(layout.warps.count), range(0, 64, 7), range(steps)):
        for t, group in product(range(layout.interleave), range(groups)):
            column, at_k = b.element(warp, lane, (group * layout.interleave + t) * steps + step)[::order]
            row, also_k = a.element(warp, lane, step)[::order]
            assert at_k == also_k
            # lane l's line of B is element (q, l / size, r) of the result of its instruction, of its row
            q, half, r = lane % size // (4 * 64 // size), lane % size // 4 % (64 // size), lane % 4
            register = ((group * (size // 4 * size // 64) + q) * layout.interleave + t) * 4 + r
            assert c.element(warp, half * size + lane % size, register)[1] == column
            assert c.element(warp, lane, 0)[0] == row


@settings(max_examples=10)
@given(rows=st.sampled_from((1, 8, 32, 48, 128)), columns=st.sampled_from((16, 64, 80, 128)), vector=SMALL)
def test_copies_have_each_element_once(rows: int, columns: int, vector: int) -> None:
    encoding = copy_of_rows((rows, columns), vector, 128)
    if encoding is not None and encoding.shape == (rows, columns):
        found = [
            encoding.element(warp, lane, register)
            for warp, lane, register in product(range(2), range(64), range(encoding.registers))
        ]
        assert sorted(set(found)) == list(product(range(rows), range(columns)))
        assert bool(encoding.rs) == (len(found) > rows * columns)


@pytest.mark.parametrize(("k", "n", "count", "element_bytes"), [(32, 128, 4, 2), (64, 128, 8, 2), (64, 64, 1, 1)])
def test_transposing_copies_hold_the_same_elements(k: int, n: int, count: int, element_bytes: int) -> None:
    found = transposing_copy(k, n, count, 4, element_bytes, 256)
    assert found is not None
    everything = []
    for warp, lane in product(range(4), range(64)):
        loaded = [found.loaded.element(warp, lane, register) for register in range(found.loaded.registers)]
        stored = [found.stored.element(warp, lane, register) for register in range(found.stored.registers)]
        assert sorted(loaded) == sorted(stored)
        assert loaded[1] == (loaded[0][0], loaded[0][1] + 1) and stored[1] == (stored[0][0] + 1, stored[0][1])
        everything += loaded
    assert sorted(everything) == list(product(range(k), range(n)))


def number(text: str, **names: int) -> int:
    """The value of a formula of integers, in which `4 i` and `4 (i / 2)` are products."""
    return int(eval(in_python(text), {}, names))


@functools.cache
def in_python(text: str) -> CodeType:
    formula = re.sub(r"(\d) ([a-z(])", r"\1 * \2", text.replace("/", "//").replace(",", ""))
    return compile(formula.strip(), text, "eval")


def assert_words_are_the_elements(encoding: Encoding, waves: int) -> None:
    words = [text.partition(" = ")[2] for text in encoding.about("ijk"[: len(encoding.hs)])]
    for wave, lane, value in product(range(waves), range(64), range(encoding.registers)):
        names = {"wave": wave, "lane": lane, "value": value}
        assert tuple(number(text, **names) for text in words) == encoding.element(wave, lane, value)


@pytest.mark.parametrize(("k", "n", "count"), [(32, 128, 4), (64, 128, 8), (64, 64, 1)])
def test_words_of_copies_are_the_elements(k: int, n: int, count: int) -> None:
    """Each coordinate as the comment of an encoding states it, of each lane's values."""
    found = transposing_copy(k, n, count, 4, 2, 256)
    assert found is not None
    assert_words_are_the_elements(found.loaded, 4)
    assert_words_are_the_elements(found.stored, 4)


@pytest.mark.parametrize("layout", ACCUMULATORS, ids=str)
def test_words_of_mma_tiles_are_the_elements(layout: MfmaTile) -> None:
    for found in (encoding_of(layout), operand_a(layout, 32, 8, k_first=False), operand_b(layout, 32, 8, k_first=True)):
        assert found is not None
        assert_words_are_the_elements(found, layout.warps.count)


@pytest.mark.parametrize("columns", [ByColumns(count=4, run=4), ByColumns(count=2, run=4, held=4, groups=4)])
def test_words_of_transposed_tiles_are_the_addresses(columns: ByColumns) -> None:
    tile = Buffer(
        name="B", shape=(int_const(64), int_const(128)), dtype=FLOAT16, scope=Scope.SHARED, span=Span("", 1, 1, 1)
    )
    text = " ".join(columns.address(tile))
    at = re.search(r"at byte (.*?), where", text)
    slot, chunk, line = (re.search(rf"\b{name} = (.*?) is ", text) for name in ("k_slot", "c", "l"))
    assert at is not None and chunk is not None and line is not None and (slot is None) == (columns.held == 0)
    example = re.search(r"for example, \(k, n\) = \((\d+), (\d+)\): (.*), byte ([\d,]+)$", text)
    assert example is not None
    for k, n in product(range(64), range(128)):
        names = {"k": k, "n": n, "l": number(line[1], n=n), "k_slot": number(slot[1], k=k) if slot else k}
        assert names["k_slot"] == columns.position(k, tile)
        names["c"] = number(chunk[1], **names)
        assert number(at[1], **names) == columns.byte_of((columns.position(k, tile), n), tile)
        if (k, n) == (int(example[1]), int(example[2])):
            assert number(at[1], **names) == number(example[4])
            assert all(names[name] == int(given) > 0 for name, given in re.findall(r"(\w+) = (\d+)", example[3]))


@pytest.mark.parametrize(("columns", "swizzle"), [(128, 128), (64, 128), (32, 64), (16, 32), (64, 32)])
def test_words_of_swizzled_rows_are_the_addresses(columns: int, swizzle: int) -> None:
    layout = SharedLayout((16, columns), 16, swizzle)
    text = address_in_rows(layout).removeprefix("element (r, j) is at byte ")
    for r, j in product(range(16), range(columns)):
        assert number(text, r=r, j=j) == byte_of(layout, (r, j))
