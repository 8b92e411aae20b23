"""What emitted sources for Hopper claim of producers, barriers and stores, beside the code that follows."""

import re
from pathlib import Path

import pytest

from tests.golden.source_text import closing
from tests.golden.test_claims import ROOT

SOURCES = sorted(path for style in ("cute", "cuda") for path in (ROOT / "emitted" / style / "sm_90a").glob("*.cu"))
ALONE = "if (tl::thread() != threads) return;  // one thread issues all loads"
FENCED = "fence.proxy.async before it, for wgmma and TMA"


def joined(text: str) -> str:
    """A text whose comments are one line each."""
    return re.sub(r" *\n *// +", " ", text)


def producers(text: str) -> list[str]:
    """What the producers of a source do."""
    found = re.finditer(r"if \(tl::is_producer<threads>\(\)\) \{", text)
    return [text[each.end() : closing(text, each.end() - 1)] for each in found]


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_loops_around_loads_are_run_by_the_thread_that_issues_them(path: Path) -> None:
    """Other threads of the producer go there only where a warp looks for active iterations."""
    for body in producers(path.read_text(encoding="utf-8")):
        around = re.search(r"for_each_work_tile\(", body)
        if around is not None and "for_each_iteration(" not in body:
            assert ALONE in body[: around.start()] and "tl::thread() == threads" not in body


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_barriers_behind_a_proxy_fence_are_called_that(path: Path) -> None:
    text = joined(path.read_text(encoding="utf-8"))
    behind = len(re.findall(rf"{re.escape(FENCED)} +\[[\w.-]+\]\n *tl::sync_consumers<threads>\(\);", text))
    assert behind == text.count("tl::sync_consumers<threads>()") == text.count(FENCED)


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_the_requests_of_a_dynamic_scheduler_order_the_producers_reads(path: Path) -> None:
    """The fetching warp overwrites work[i] behind a request that the producer makes after it has read it."""
    text = path.read_text(encoding="utf-8")
    assert ("scheduler.load_iterations(" in text) == bool(
        re.search(r"scheduled_tiles\.wanted +producer, once per tile +fetching warp +the next fetch; WAR", text)
    )


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_tiles_of_work_without_iterations_load_the_prologue(path: Path) -> None:
    text = joined(path.read_text(encoding="utf-8"))
    stated = "Each tile of work is a phase of prologue_barriers: one without iterations loads " in text
    persistent = "prologue_barriers.full[0]" in text
    assert stated == (persistent and bool(re.search(r"\bif \((?:work\.\w+|num_iterations) > 0\)", text)))


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_orders_of_tiles_have_the_groups_of_their_calls(path: Path) -> None:
    text = joined(path.read_text(encoding="utf-8"))
    calls = re.findall(r"tl::lpt_order<(\d+)>\(", text)
    assert calls == re.findall(r"LPT order: .*? in groups of (\d+) values of \(y, z\)", text)


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_fewer_bits_of_sums_are_stated_where_wgmma_multiplies_8_bit_floats(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    small = re.search(r"wgmma\.m64n\d+k32\.f32\.e[45]m[23]\.e[45]m[23]", text)
    assert ("wgmma keeps about 14 bits" in joined(text)) == (small is not None)


@pytest.mark.parametrize("path", sorted((ROOT / "emitted").rglob("*.cu")), ids=str)
def test_lines_in_the_head_are_those_of_the_file(path: Path) -> None:
    text = joined(path.read_text(encoding="utf-8")).partition("#include")[0]
    assert ("; lines are those of" in text) == ("; no producer: " in text)


@pytest.mark.parametrize("path", sorted((ROOT / "emitted/cuda").rglob("*.cu")), ids=str)
def test_heads_that_deny_checks_have_no_checked_extent(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    checked = "tl::predicated(" in text or "_map" in text
    assert ("provably in bounds: no check is added" in joined(text)) == (not checked)
