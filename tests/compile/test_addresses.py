"""The machine code of where copies and fragments lie: one address for many accesses, and no sign of thread numbers."""

import re
from collections import Counter
from pathlib import Path

from tests.compile.test_held import ROOT, compiled

COPIES = ROOT / "emitted/cuda/sm_90a/w2a8_gemv.cu"
_PLACE = re.compile(r"LDGSTS\S* \[(?P<to>[^\]]*)\]")


def test_copies_of_a_column_of_chunks_share_an_address_of_the_thread(nvcc: str, nvdisasm: str, tmp_path: Path) -> None:
    """Four chunks a thread, 4 rows apart: 0x400 bytes.

    No address is in a uniform register: ptxas 13.0 and 13.5 encode `[R + UR]` beside a cache policy as an instruction
    that an H200 calls illegal.
    """
    assert "tl::copy_async_once<" in COPIES.read_text()
    ptx, machine_code = compiled(nvcc, nvdisasm, COPIES, tmp_path)
    assert "createpolicy.fractional.L2::evict_first" in ptx and "L2::cache_hint" in ptx
    places = _PLACE.findall(machine_code)
    assert places and not any("UR" in place for place in places)
    sections = [part for part in machine_code.split(".section") if part.startswith("\t.text.")]
    (aligned,) = (part for part in sections if "RowStartILi16" in part.partition(",")[0])
    apart = [place.split("+") for place in _PLACE.findall(aligned) if "+" in place]
    assert len(apart) == 4 * 2 * 2  # with a policy and without, before the loop and in it
    assert set(Counter(register for register, _ in apart).values()) == {4}
    assert {int(offset, 16) % 0x400 for _, offset in apart} == {0}


def test_places_of_fragments_know_no_sign(nvcc: str, nvdisasm: str, tmp_path: Path) -> None:
    """A quotient of a signed number takes two shifts and a sum more than one of an unsigned number."""
    _, machine_code = compiled(nvcc, nvdisasm, ROOT / "emitted/cuda/sm_80/rmsnorm.cu", tmp_path)
    assert "LDG" in machine_code and "SHF.R.S32" not in machine_code
