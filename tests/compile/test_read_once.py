"""The machine code of copies with a cache policy: ptxas must not put their address into a uniform register."""

import re
from pathlib import Path

from tests.compile.test_held import compiled

EMITTED = Path(__file__).resolve().parents[2] / "emitted/cuda/sm_90a"
_COPY = re.compile(r"LDGSTS\S* \[(?P<to>[^\]]*)\]")


def test_copies_with_a_policy_have_an_address_of_the_thread(nvcc: str, nvdisasm: str, tmp_path: Path) -> None:
    """ptxas 13.0 and 13.5 encode `[R + UR]` beside a policy as an instruction that an H200 calls illegal."""
    text = EMITTED / "w2a8_gemv.cu"
    assert "tl::copy_async_once<" in text.read_text()
    ptx, machine_code = compiled(nvcc, nvdisasm, text, tmp_path)
    assert "createpolicy.fractional.L2::evict_first" in ptx and "L2::cache_hint" in ptx
    places = _COPY.findall(machine_code)
    assert places and not any("UR" in place for place in places)
