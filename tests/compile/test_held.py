"""Where a loop's products keep their first operand in registers, the machine code keeps it there, too (held.py)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.built import built
from tests.compile.held import held_in_machine_code, held_in_ptx

ROOT = Path(__file__).resolve().parents[2]
EMITTED = ROOT / "emitted/cuda/sm_90a"
HELD = {
    "attention": 8,
    "attention_block_sparse": 8,
    "attention_forward": 4,
    "attention_varlen": 8,
    "causal/attention": 8,
    "mla_decode": 8,
}

PTX = """
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];
$L__BB0_1:
{
.reg .pred p;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4},
{%r1, %r2, %r3, %r4}, %rd1, p, 1, 1, 0;
}
cvt.rn.f16x2.f32 %r5, %f1, %f2;
cvt.rn.f16x2.f32 %r6, %f3, %f4;
{
.reg .pred p;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f5, %f6, %f7, %f8},
{%r5, %r6, %r5, %r6}, %rd2, p, 1, 1, 1;
}
@%p1 bra $L__BB0_1;
ret;
"""
MACHINE_CODE = """
        /*0000*/                   LDSM.16.M88.4 R152, [R9] ;
.L_x_1:
        /*0010*/                   HGMMA.64x8x16.F32 R24, R152, gdesc[UR8], RZ, !UPT, gsb0 ;
        /*0020*/                   F2FP.F16.F32.PACK_AB R{packed}, R24, R25 ;
        /*0030*/                   HGMMA.64x8x16.F32 R88, R{packed}, gdesc[UR4].tnspB, R88, gsb0 ;
        /*0040*/               @P0 BRA `(.L_x_1) ;
        /*0050*/                   EXIT ;
"""


@pytest.mark.nightly
@pytest.mark.sweep(every=6)  # "attention", which other tests compile, too
@pytest.mark.parametrize("name", HELD)
def test_operands_that_a_loop_keeps_have_registers_of_their_own(nvcc: str, nvdisasm: str, name: str) -> None:
    ptx, machine_code = compiled(nvcc, nvdisasm, EMITTED / f"{name}.cu")
    assert held_in_ptx(ptx) == HELD[name]
    assert held_in_machine_code(machine_code) == HELD[name]


def test_registers_that_ptxas_gives_away_are_missed() -> None:
    """As ptxas 13.0 does it to a kept operand: what the loop packs for its second product takes the same registers."""
    assert held_in_ptx(PTX) == 1
    assert held_in_machine_code(MACHINE_CODE.format(packed=184)) == 1
    assert held_in_machine_code(MACHINE_CODE.format(packed=152)) == 0
    assert held_in_machine_code(MACHINE_CODE.format(packed=153)) == 0


def test_every_text_that_keeps_an_operand_is_among_these() -> None:
    rules = ("[pipeline.gemm.register-operand]", "_shared in registers")
    texts = {path: path.read_text(encoding="utf-8") for path in EMITTED.rglob("*.cu")}
    keep = {
        str(path.relative_to(EMITTED).with_suffix("")) for path, text in texts.items() if any(r in text for r in rules)
    }
    assert keep == HELD.keys()


def compiled(nvcc: str, nvdisasm: str, text: Path) -> tuple[str, str]:
    """nvcc's PTX and nvdisasm's text of it. Several tests read those of one kernel, which is compiled once."""
    command = [
        nvcc, "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", f"-I{ROOT / 'headers'}", "-cubin", "-keep",
        "-o", "text.cubin", str(text),
    ]  # fmt: skip
    cubin = built("text.cubin", [command], text, text.with_suffix(".h"))
    disassembled = subprocess.run([nvdisasm, "-c", str(cubin)], check=True, capture_output=True, text=True, timeout=300)
    return cubin.with_name(f"{text.stem}.ptx").read_text(encoding="utf-8"), disassembled.stdout
