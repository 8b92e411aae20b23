"""What happens inside headers/tl is reported at the line of the text that called it."""

from __future__ import annotations

import numpy as np
from kernels_under_test import Bench, Outcome, Uninitialised


def launch(bench: Bench, fault: int) -> tuple[Outcome, np.ndarray]:
    tile = np.random.default_rng(4).integers(-3, 4, (64, 64)).astype(np.float16)
    out = Uninitialised((64, 64), np.dtype(np.float32))
    outcome = bench.launch("vocabulary", "square_run", fault, tile, out, check=True, statistics=True)
    return outcome, tile.astype(np.float32) @ tile.astype(np.float32).T


def test_clean_tiles_are_right_silent_and_without_conflicts(bench: Bench) -> None:
    outcome, expected = launch(bench, fault=0)
    assert outcome.findings == []
    np.testing.assert_array_equal(outcome.arrays[1], expected)
    library = bench.library("vocabulary")
    shared = outcome.report["statistics"]["shared"]
    assert {row["place"]["line"] for row in shared} == {library.line("copy"), library.line("gemm")}
    assert {row["worst_ways"] for row in shared} == {1}


def test_missing_barrier_between_tiles_names_the_lines_of_the_text(bench: Bench) -> None:
    outcome, _ = launch(bench, fault=1)
    library = bench.library("vocabulary")
    assert outcome.kinds & {"race: write -> read", "race: read -> write"}
    places = [place for finding in outcome.findings for place in finding["places"]]
    assert {place["file"] for place in places} == {str(library.source)}
    assert {place["line"] for place in places} == {library.line("copy"), library.line("gemm")}
