"""The machine code of where elements lie: one address for many accesses, no sign, one test for what is consecutive."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.compile.test_held import ROOT, compiled
from tile2cu.api import emit_text
from tile2cu.targets import find

COPIES = ROOT / "emitted/cuda/sm_90a/w2a8_gemv.cu"
_PLACE = re.compile(r"LDGSTS\S* \[(?P<to>[^\]]*)\]")


@pytest.mark.nightly
def test_copies_of_a_column_of_chunks_share_an_address_of_the_thread(nvcc: str, nvdisasm: str) -> None:
    """Four chunks a thread, 4 rows apart: 0x400 bytes.

    No address is in a uniform register: ptxas 13.0 and 13.5 encode `[R + UR]` beside a cache policy as an instruction
    that an H200 calls illegal.
    """
    assert "tl::copy_async_once<" in COPIES.read_text(encoding="utf-8")
    ptx, machine_code = compiled(nvcc, nvdisasm, COPIES)
    assert "createpolicy.fractional.L2::evict_first" in ptx and "L2::cache_hint" in ptx
    places = _PLACE.findall(machine_code)
    assert places and not any("UR" in place for place in places)
    sections = [part for part in machine_code.split(".section") if part.startswith("\t.text.")]
    (aligned,) = (part for part in sections if "AlignedILi16" in part.partition(",")[0])
    apart = [place.split("+") for place in _PLACE.findall(aligned) if "+" in place]
    assert len(apart) == 4 * 2 * 2  # with a policy and without, before the loop and in it
    assert set(Counter(register for register, _ in apart).values()) == {4}
    assert {int(offset, 16) % 0x400 for _, offset in apart} == {0}


@pytest.mark.nightly
def test_places_of_fragments_know_no_sign(nvcc: str, nvdisasm: str) -> None:
    """A quotient of a signed number takes two shifts and a sum more than one of an unsigned number."""
    _, machine_code = compiled(nvcc, nvdisasm, ROOT / "emitted/cuda/sm_80/rmsnorm.cu")
    assert "LDG" in machine_code and "SHF.R.S32" not in machine_code


def test_what_a_row_needs_is_computed_once_where_lanes_are_idle(nvcc: str, nvdisasm: str, tmp_path: Path) -> None:
    """20 of 32 lanes hold a row's 160 elements, 8 each, and each thread has two rows: two roots, not sixteen.

    Idle lanes take no branch, so that squares are added as they are made; halves that may be zeros stay in pairs.
    """
    bindings = {"dim": 160, "block_M": 8, "threads": 128}
    (emitted,) = emit_text(ROOT / "examples/rmsnorm.py", kernel=None, target=find("cuda:sm_90a"), bindings=bindings)
    for name, content in emitted.files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    text = (tmp_path / "rmsnorm.cu").read_text(encoding="utf-8")
    assert "tl::Blocked<tl::Shape<block_M, dim>, tl::Shape<4, 32>, 8, 2>" in text and "predicated(M)" in text
    _, machine_code = compiled(nvcc, nvdisasm, tmp_path / "rmsnorm.cu")
    assert machine_code.count("MUFU.RSQ") == 2
    assert machine_code.count("FFMA") >= 2 * 8 and "BSSY" not in machine_code and "PRMT" not in machine_code
