"""The pictures of pipelines and of shared memory agree with the schedule and with the budget."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import combinations
from pathlib import Path

import pytest

from tile2cu.api import one_resolved_kernel
from tile2cu.core.decisions import PIPELINE, SCHEDULE, SHARED_BUDGET
from tile2cu.core.program import Loop, walk_stmts
from tile2cu.core.schedule import MmaOverlap, round_up
from tile2cu.emitter import Resolved
from tile2cu.review.dataflow import dataflow
from tile2cu.review.memory_map import live_steps, memory_picture, stored
from tile2cu.review.timeline import Bar, Timeline, timeline, timeline_picture
from tile2cu.targets import find

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CASES = [
    ("gemm_relu", "cuda:sm_80"),
    ("gemm_relu", "cuda:sm_90a"),
    ("gemm_relu", "hip:gfx942"),
    ("attention", "cuda:sm_90a"),
    ("attention", "cuda:sm_80"),
    ("mla_decode", "cuda:sm_90a"),
    ("gemm_persistent", "cuda:sm_90a"),
    ("row_softmax", "cuda:sm_80"),
]


def launches(name: str, target: str) -> tuple[Resolved, ...]:
    return one_resolved_kernel(EXAMPLES / f"{name}.py", None, target=find(target), bindings={})


def charts(name: str, target: str) -> list[tuple[Resolved, Timeline]]:
    return [
        (resolved, chart)
        for resolved in launches(name, target)
        for stmt in walk_stmts(resolved.launch.body)
        if isinstance(stmt, Loop) and (chart := timeline(stmt, resolved)) is not None
    ]


def of_row(chart: Timeline, row: str) -> list[Bar]:
    return sorted((bar for bar in chart.bars if bar.row == row), key=lambda bar: bar.start)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_the_map_has_the_bytes_of_the_budget(name: str, target: str) -> None:
    for resolved in launches(name, target):
        budget, found = resolved.facts[resolved.launch, SHARED_BUDGET], stored(resolved)
        sizes = {each.name: each.bytes for each in found}
        assert all(sizes[tile] == size for tile, size in budget.tiles if tile in sizes)
        end = max((each.end for each in found), default=0)
        assert end <= budget.total and any(budget.total == round_up(end, 1 << bits) for bits in range(11))
        if budget.aliased:
            parts = [each for each in found if "live in lines" in each.live]
            assert min(each.start for each in parts) == budget.aliased[0]
            assert max(each.end for each in parts) <= budget.aliased[1]
        alone = sorted((each for each in found if each.part is None), key=lambda each: each.start)
        assert all(a.end <= b.start for a, b in zip(alone, alone[1:], strict=False))


def test_the_map_is_plotted_to_scale() -> None:
    (resolved,) = launches("gemm_relu", "cuda:sm_80")
    cells = [
        each.attrib for each in ElementTree.fromstring(memory_picture(resolved)).iter() if "data-name" in each.attrib
    ]
    assert [(cell["data-name"], cell["data-start"], cell["data-bytes"]) for cell in cells] == [
        ("A_shared", "0", "24576"),
        ("B_shared", "24576", "24576"),
    ]
    assert float(cells[1]["x"]) - float(cells[0]["x"]) == float(cells[0]["width"]) == float(cells[1]["width"])


@pytest.mark.parametrize(("name", "target"), CASES[:7])
def test_a_stage_holds_one_tile_at_a_time(name: str, target: str) -> None:
    found = charts(name, target)
    assert found
    for resolved, chart in found:
        stages = resolved.facts[chart.loop, PIPELINE].stages
        rows = [row for row in chart.rows if "stage " in row]
        assert len(rows) % min(stages, len(rows)) == 0
        for row in rows:
            bars = of_row(chart, row)
            assert all(a.end <= b.start for a, b in zip(bars, bars[1:], strict=False))
            for k in {bar.iteration for bar in bars}:
                assert [bar.what for bar in bars if bar.iteration == k] == ["arrive", "in use"]
                assert k % stages == int(row.rpartition(" ")[2])


@pytest.mark.parametrize(("name", "target"), CASES[:7])
def test_nobody_does_two_things_in_one_step(name: str, target: str) -> None:
    for _, chart in charts(name, target):
        for row in ("producer warp", "consumer warps", "all threads", "warpgroup 0", "warpgroup 1"):
            bars = of_row(chart, row)
            assert all(a.end <= b.start for a, b in zip(bars, bars[1:], strict=False))


def test_tiles_pass_through_registers() -> None:
    """In iteration k of a register-staged pipeline of two stages, tile k + 1 is stored and tile k + 2 is loaded."""
    ((_, chart),) = charts("gemm_relu", "hip:gfx942")
    order = [(bar.what.partition(" ")[0], bar.iteration) for bar in of_row(chart, "all threads")]
    assert order[:3] == [("issue", 0), ("store", 0), ("issue", 1)]
    assert order[3:9] == [("store", 1), ("issue", 2), ("run", 0), ("store", 2), ("issue", 3), ("run", 1)]
    held = of_row(chart, "registers")
    assert [bar.iteration for bar in held] == [0, 1, 2, 3]
    assert all(a.end <= b.start for a, b in zip(held, held[1:], strict=False))


def test_two_mmas_overlap() -> None:
    """The second MMA of an iteration is in flight while the next one computes its softmax."""
    ((resolved, chart),) = charts("attention", "cuda:sm_90a")
    overlap = resolved.facts[chart.loop, SCHEDULE]
    assert isinstance(overlap, MmaOverlap)
    first, second = (f"MMA of line {mma.span.line}, in flight" for mma in overlap.mmas)
    steps = of_row(chart, "consumer warps")
    for flight in of_row(chart, second)[:-1]:
        during = {(bar.iteration, bar.line) for bar in steps if flight.start < bar.start < flight.end}
        assert all((flight.iteration + 1, stmt.span.line) in during for stmt in overlap.between)
        assert any(other.start < flight.end and flight.start < other.end for other in of_row(chart, first))


def test_a_load_of_all_threads_is_issued_stages_minus_one_earlier() -> None:
    ((resolved, chart),) = charts("gemm_relu", "cuda:sm_80")
    order = [(bar.what, bar.iteration) for bar in of_row(chart, "all threads")]
    assert order[:6] == [
        ("issue loads", 0),
        ("issue loads", 1),
        ("issue loads", 2),
        ("run", 0),
        ("issue loads", 3),
        ("run", 1),
    ]


@pytest.mark.parametrize("name", ["gemm_relu", "attention", "gemm_persistent"])
def test_mbarriers_complete_when_tiles_arrive_and_when_stages_are_free(name: str) -> None:
    """The producer waits for the empty barrier of a stage, the consumers for the full one; phases count its uses."""
    ((resolved, chart),) = charts(name, "cuda:sm_90a")
    stages = resolved.facts[chart.loop, PIPELINE].stages
    full, empty = ([row for row in chart.rows if f"{kind} mbarriers" in row] for kind in ("full", "empty"))
    assert len(full) == len(empty) > 0
    for arrived, freed in zip(full, empty, strict=True):
        ring = arrived.removesuffix("full mbarriers")
        for k, event in enumerate(of_row(chart, arrived)):
            waits, used = (
                next(
                    bar for bar in of_row(chart, f"{ring}stage {k % stages}") if (bar.iteration, bar.what) == (k, what)
                )
                for what in ("arrive", "in use")
            )
            assert event.start == event.end == waits.end == used.start
            assert event.what == f"the full mbarrier of stage {k % stages} completes phase {k // stages}"
            done = next(bar for bar in of_row(chart, freed) if bar.iteration == k)
            assert done.start == done.end == used.end
            later = [bar.start for bar in chart.bars if bar.row == waits.row and bar.iteration == k + stages]
            assert all(done.start <= start for start in later)


@pytest.mark.parametrize(("name", "target"), [("gemm_relu", "cuda:sm_80"), ("gemm_relu", "hip:gfx942")])
def test_a_block_barrier_precedes_the_reads_of_an_iteration(name: str, target: str) -> None:
    ((_, chart),) = charts(name, target)
    barriers = {bar.iteration: bar.start for bar in of_row(chart, "block barriers")}
    for bar in of_row(chart, "all threads"):
        if bar.what == "run":
            assert barriers[bar.iteration] <= bar.start
    arrived = {bar.iteration: bar.end for bar in chart.bars if bar.what == "arrive"}
    assert all(arrived[k] <= step for k, step in barriers.items())


def test_memory_is_filled_while_a_tile_is_live() -> None:
    """K and V through the loop, Q from its load on, and the staging tile at the store, in which Q's memory is free."""
    (resolved,) = launches("attention", "cuda:sm_90a")
    lines = {
        each.attrib["data-name"]: each.attrib["data-lines"]
        for each in ElementTree.fromstring(memory_picture(resolved)).iter()
        if "data-name" in each.attrib
    }
    assert lines["K_shared"] == lines["V_shared"] == "80-124"
    assert lines["Q_shared"] == "61-124" and lines["acc_o_staging"] == "131-131"


@pytest.mark.parametrize(("name", "target"), [*CASES, ("flash_decoding", "cuda:sm_80")])
def test_live_tiles_do_not_overlap(name: str, target: str) -> None:
    for resolved in launches(name, target):
        flow = dataflow(resolved)
        cells = [(each, live) for each in stored(resolved) for live in live_steps(each, flow)]
        for (one, live), (other, then) in combinations(cells, 2):
            apart = one.end <= other.start or other.end <= one.start
            assert apart or set(live).isdisjoint(then), (one.name, other.name)


def test_the_chart_has_its_bars_as_data() -> None:
    ((_, chart),) = charts("gemm_relu", "cuda:sm_90a")
    root = ElementTree.fromstring(timeline_picture(chart, {24: "T.gemm(...)"}))
    found = [
        (each.attrib["data-row"], int(each.attrib["data-start"]), int(each.attrib["data-end"]))
        for each in root.iter()
        if "data-row" in each.attrib
    ]
    assert found == [(bar.row, bar.start, bar.end) for bar in chart.bars]
    assert root.get("role") == "img"
