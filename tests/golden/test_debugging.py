"""Where a source's head sends a reader whose result is wrong: the places exist, and so do the waits before them."""

import re
from pathlib import Path

import pytest

from tests.golden.test_claims import ROOT

EMITTED = sorted(path for kind in ("cu", "hip") for path in (ROOT / "emitted").rglob(f"*.{kind}"))
ROW = re.compile(r"^//   (?:\w+: )?(\w+(?:, \w+)*)  +((?:in iteration|after|before) .*)$")


@pytest.mark.parametrize("path", EMITTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_places_of_tiles_are_in_the_kernel(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    start = text.index("// If a result is wrong")
    head, kernel = text[start : text.index("\n//\n", start)], text[text.index("#include") :]
    code = re.sub(r"//.*", "", kernel)
    joined = re.sub(r"\n// {6,}(?=\S)", " ", head)
    rows = [found.groups() for line in joined.splitlines() if (found := ROW.match(line))]
    for names, where in rows:
        assert all(re.search(rf"\b{name}\b", code) for name in names.split(", ")), names
        for place in re.findall(r"\b\w+\.py:\d+(?:-\d+)?", where):
            assert re.search(rf"// .*{re.escape(place)}\b(?!-)", kernel), place
        if "consumer_wait" in where:
            assert "consumer_wait" in code
        if "wait for that MMA" in where:
            assert re.search(r"gemm_wait|warpgroup_wait|wait<", code)
        if "parts of its tile are visible" in where:
            loop = re.search(r"in iteration (\w+)", where)
            assert loop
            about = f"all threads' parts of tile {loop[1]} are visible"
            assert re.search(rf"(?:sync_threads|block_sync_lds)\(\);  // {about}", kernel)
        if "by the warpgroup whose iteration it is" in where:
            assert re.search(r"Warpgroup (.+? % 2) owns iteration", kernel)
            if "after the wait" in where:
                assert len(re.findall(r"\b(?:gemm_wait|warpgroup_wait)<0>", code)) >= 4, "two of each warpgroup"
        if "partial sum" in where:
            loop = re.search(r"last iteration of (\w+)", where)
            assert loop
            assert re.search(rf"\bint {loop[1]}\b", code)
            adds = rf"(?:gemm|mma)\w*(?:<[^;(]*>)?\([^;]*\b{names}(?!\w|, tl::overwrite\b)"
            assert re.search(adds, code)
        if "the barrier at its start" in where:
            loop = re.search(r"in iteration (\w+)", where)
            assert loop
            bodies = re.split(rf"for \(int {loop[1]}\w* = ", code)[1:]
            assert any(re.search(r"sync_threads|__syncthreads|block_sync_lds", body[:900]) for body in bodies)
    has_fragment = re.search(r"tl::gemm\w*\(|cute::gemm|block_gemm|gemm\(", code)
    assert bool(rows) or not has_fragment, "a kernel with an MMA has tiles to look at"


@pytest.mark.parametrize("path", EMITTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_command_runs_this_file(path: Path) -> None:
    about = re.sub(r"\n// ?", " ", path.read_text(encoding="utf-8"))
    command = re.search(r"`tile2cu run (\S+)(?: --device (\w+))?((?: --size \w+=...)*)`", about)
    assert command and command[1] == path.name
    style = path.relative_to(ROOT / "emitted").parts[0]
    assert command[2] == {"cute": "ptx", "ck": "sim"}.get(style)
