"""The picture of a kernel's dataflow has the accesses that the effects table lists."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tile2cu.api import one_resolved_kernel
from tile2cu.emitter import Resolved
from tile2cu.review.dataflow import Step, dataflow, dataflow_picture
from tile2cu.targets import find

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def resolved(name: str, target: str = "cuda:sm_80") -> Resolved:
    (found,) = one_resolved_kernel(EXAMPLES / f"{name}.py", None, target=find(target), bindings={})
    return found


def step(steps: tuple[Step, ...], text: str) -> Step:
    (found,) = [each for each in steps if each.text.startswith(text)]
    return found


def test_a_gemm_s_tiles_from_global_memory_to_registers_and_back() -> None:
    flow = dataflow(resolved("gemm_relu"))
    assert flow.buffers == (
        ("A", "global memory"),
        ("B", "global memory"),
        ("C", "global memory"),
        ("A_shared", "shared memory"),
        ("B_shared", "shared memory"),
        ("C_local", "registers"),
    )
    gemm, loop = step(flow.steps, "T.gemm"), step(flow.steps, "for k")
    assert gemm.reads == ("A_shared", "B_shared", "C_local") and gemm.writes == ("C_local",)
    assert loop.loop and loop.text.endswith("(pipelined)") and gemm.depth == loop.depth + 1
    assert step(flow.steps, "T.copy(C_local").writes == ("C",)


def test_marks_are_in_the_columns_of_their_tiles() -> None:
    picture = ElementTree.fromstring(dataflow_picture(resolved("gemm_relu")))
    reads = {(each.get("data-line"), each.get("data-reads")): each.get("cx") for each in picture.iter()}
    columns: dict[str | None, set[str | None]] = {}
    for (_, name), x in reads.items():
        columns.setdefault(name, set()).add(x)
    del columns[None]
    assert len(columns) == 5 and all(len(places) == 1 for places in columns.values())
    writes = [each.get("data-writes") for each in picture.iter() if each.get("data-writes")]
    assert writes == ["C_local", "A_shared", "B_shared", "C_local", "C_local", "C"]


def test_a_tile_of_another_shape_is_its_storage() -> None:
    """A view reads and writes the tile that it is a view of."""
    flow = dataflow(resolved("attention", "cuda:sm_90a"))
    named = {name for each in flow.steps for name in (*each.reads, *each.writes)}
    assert named == {name for name, _ in flow.buffers}


def test_the_same_bytes() -> None:
    assert dataflow_picture(resolved("attention")) == dataflow_picture(resolved("attention"))
