"""Resources: what ptxas and nvdisasm print is read, and what is worth a warning is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tile2cu_runtime import resources
from tile2cu_runtime.errors import ArgumentError
from tile2cu_runtime.resources import Compiled, inspect, readable
from tile2cu_runtime.sass import class_of, count_sass, read_ptxas
from tile2cu_runtime.spec import parse_manifest

EMITTED = Path(__file__).resolve().parents[3] / "emitted"
PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90a'
ptxas info    : Function properties for one
    416 bytes stack frame, 432 bytes spill stores, 600 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 416 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 322.569 ms
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers, used 0 barriers
"""
SASS = """\
//--------------------- .text.one --------------------------
\t.section\t.text.one,"ax",@progbits
one:
.text.one:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0020*/             @!UP1 UTMALDG.2D [UR4], [UR6] ;
.L_x_1:
        /*0030*/                   HGMMA.64x256x16.F32 R24, gdesc[UR4], R24 ;
        /*0040*/                   FFMA R1, R2, R3, R4 ;
        /*0050*/                   STL [R1], R2 ;
        /*10060*/               @P0 BRA `(.L_x_1) ;
"""


def test_what_ptxas_states_is_read() -> None:
    one, two = read_ptxas(PTXAS)
    assert (one.symbol, one.registers, one.stack_bytes) == ("one", 255, 416)
    assert (one.spill_store_bytes, one.spill_load_bytes, one.shared_static) == (432, 600, 1024)
    assert (two.symbol, two.registers, two.spill_store_bytes, two.shared_static) == ("two", 16, 0, 0)


def test_instructions_are_counted_by_class() -> None:
    assert count_sass(SASS) == {
        "one": {"integer and moves": 1, "global load": 1, "tma": 1, "mma": 1, "fma": 1, "local": 1, "control": 1}
    }


@pytest.mark.parametrize(
    ("mnemonic", "name"),
    [
        ("HMMA", "mma"), ("IMMA", "mma"), ("QGMMA", "mma"), ("DMMA", "mma"), ("IMAD", "integer and moves"),
        ("HFMA2", "fma"), ("DFMA", "fma"), ("LDGSTS", "async copy"), ("LDGDEPBAR", "synchronisation"),
        ("LDSM", "shared"), ("LDS", "shared"), ("LDC", "integer and moves"), ("LDL", "local"), ("ATOMG", "atomic"),
        ("RED", "atomic"), ("REDUX", "warp"), ("WARPSYNC", "synchronisation"), ("UTMASTG", "tma"),
    ],
)  # fmt: skip
def test_a_mnemonic_has_its_class(mnemonic: str, name: str) -> None:
    assert class_of(mnemonic) == name


def test_variants_of_a_kernel_are_told_apart() -> None:
    symbol = "_ZN7mm_impl9mm_kernelIN2tl{}EEEvPKf"
    assert readable(symbol.format("12AnyAlignment")) == "mm_impl::mm_kernel<AnyAlignment>"
    assert readable(symbol.format("7AlignedILi16EE")) == "mm_impl::mm_kernel<Aligned<16>>"


def data(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((EMITTED / f"{name}.json").read_text(encoding="utf-8"))
    return content


def compiled(monkeypatch: pytest.MonkeyPatch, *found: Compiled) -> None:
    """What the compiler makes of every source for CUDA."""
    monkeypatch.setattr(resources, "_cuda", lambda manifest, folder: (list(found), []))


def plain(symbol: str = "_ZN14gemm_relu_impl16gemm_relu_kernelEi", **other: int) -> Compiled:
    return Compiled(symbol=symbol, registers=154, stack_bytes=0, **other)


def test_a_spill_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = parse_manifest(data("cuda/sm_90a/gemm_relu"))
    compiled(monkeypatch, plain())
    assert inspect(manifest, EMITTED).warnings == ()
    compiled(monkeypatch, plain(spill_store_bytes=432, spill_load_bytes=600))
    (warning,) = inspect(manifest, EMITTED).warnings
    assert "gemm_relu_kernel spills registers: 432 bytes of stores, 600 bytes of loads" in warning


def test_spilled_registers_of_amd_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_hip", lambda manifest, folder: ([plain(spilled_registers=7)], []))
    (warning,) = inspect(parse_manifest(data("hip/gfx942/gemm_relu")), EMITTED).warnings
    assert "spills 7 registers to scratch memory" in warning


def test_an_mma_computed_by_fma_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    content = data("cuda/sm_90a/gemm_relu")
    for fact in content["facts"]:
        if fact["what"] == "instruction":
            fact["value"] = "fma"
    compiled(monkeypatch, plain())
    (warning,) = inspect(parse_manifest(content), EMITTED).warnings
    assert "the GEMM at gemm_relu.py:24 is computed by FMA" in warning


def test_a_block_that_does_not_fit_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(monkeypatch, plain(shared_static=100_000))
    found = inspect(parse_manifest(data("cuda/sm_90a/gemm_relu")), EMITTED, {"M": 256, "N": 256})
    assert found.kernels[0].occupancy.blocks_per_sm == 0
    assert "no block fits on an SM (shared memory)" in found.warnings[0]
    assert str(found)  # waves of no resident block are printable, too


def test_waves_follow_from_the_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(monkeypatch, plain())
    manifest = parse_manifest(data("cuda/sm_90a/gemm_relu"))  # 128 x 256 tiles, one block of 214,016 bytes per SM
    assert inspect(manifest, EMITTED).kernels[0].waves is None
    waves = inspect(manifest, EMITTED, {"M": 1000, "N": 4096}).kernels[0].waves
    assert waves is not None and (waves.blocks, waves.blocks_per_wave) == (8 * 16, 132)


def test_a_persistent_kernel_has_one_wave_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    content = data("cuda/sm_90a/gemm_relu")
    content["launch"] |= {"grid": ["tl::persistent_grid(tiles)"], "tiles": content["launch"]["grid"]}
    compiled(monkeypatch, plain())
    waves = inspect(parse_manifest(content), EMITTED, {"M": 8192, "N": 8192}).kernels[0].waves
    assert waves is not None and (waves.blocks, waves.count) == (132, 1.0)


@pytest.mark.parametrize(("sizes", "code"), [({"P": 1}, "T2C-R100"), ({"M": 1}, "T2C-R105")])
def test_sizes_are_checked(sizes: dict[str, int], code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(monkeypatch, plain())
    with pytest.raises(ArgumentError) as caught:
        inspect(parse_manifest(data("cuda/sm_90a/gemm_relu")), EMITTED, sizes)
    assert caught.value.code == code


def test_each_launch_of_a_source_has_its_own_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    add = plain("_ZN16gemm_splitk_impl3add22gemm_splitk_add_kernelEv")
    multiply = plain("_ZN16gemm_splitk_impl8multiply27gemm_splitk_multiply_kernelEv")
    compiled(monkeypatch, add, multiply)
    kernels = inspect(parse_manifest(data("cuda/sm_90a/gemm_splitk")), EMITTED).kernels
    assert [(each.threads, each.shared_dynamic > 0) for each in kernels] == [(128, False), (288, True)]
