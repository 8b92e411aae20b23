"""The k that comments of MFMAs state is what the header's distribution gives (headers/tl/common/cdna/mfma_gemm.h)."""

from __future__ import annotations

import itertools
import re

import pytest

from tile2cu.plan.mfma_steps import MfmaSteps

WAVE = 64


def header_k(steps: MfmaSteps, size: int, mfma: int, lane: int, i: int) -> int:
    """MfmaK::first of the value's step, and the place in its piece."""
    count = steps.items // steps.each
    item = steps.each * (mfma % count) + i
    first = steps.extent * (mfma // count) + steps.piece * (steps.groups * (item // steps.piece) + lane // size)
    return first + item % steps.piece


def stated_k(text: str, mfma: int, lane: int, i: int) -> int:
    """The value of a formula such as `32 (s / 2) + 8 (lane / 16) + 4 (s % 2) + i`."""
    python = re.sub(r"(\d) (\(|s\b)", r"\1 * \2", text).replace("/", "//")
    return int(eval(python, {"s": mfma, "lane": lane, "i": i}))


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("each", [1, 2, 4, 8])
@pytest.mark.parametrize("pieces", [(1, 1), (2, 1), (1, 2), (4, 1), (1, 4)])
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_all_of_k_is_stated(size: int, each: int, pieces: tuple[int, int], iterations: int) -> None:
    in_piece, count = pieces
    groups = WAVE // size
    steps = MfmaSteps(items=each * in_piece * count, piece=each * in_piece, each=each, groups=groups)
    depth = steps.extent * iterations
    text = steps.of_mfma(depth, size)
    assert text
    found = []
    for mfma, group, i in itertools.product(range(depth // (each * groups)), range(groups), range(each)):
        lane = group * size + 3
        assert stated_k(text, mfma, lane, i) == header_k(steps, size, mfma, lane, i)
        found.append(header_k(steps, size, mfma, lane, i))
    assert sorted(found) == [*range(depth)]


def test_values_of_several_pieces_have_no_formula() -> None:
    assert MfmaSteps(items=16, piece=8, each=4, groups=4).of_mfma(64, 16) == ""
    assert MfmaSteps(items=8, piece=4, each=8, groups=4).of_mfma(32, 16) == ""
