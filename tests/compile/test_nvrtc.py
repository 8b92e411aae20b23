"""NVRTC takes the emitted text, and a vendored folder, as they are: of 12.4 and of the newest 13, without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compile.nvrtc import Nvrtc, versions
from tile2cu.cli import main

ROOT = Path(__file__).resolve().parents[2]
EMITTED = ROOT / "emitted" / "cuda"
TEXTS = sorted(EMITTED.glob("*/*.cu"))  # those in folders below are the same kernels, of other sizes
VERSIONS = versions()
pytestmark = pytest.mark.needs("nvrtc")


def text_id(text: Path) -> str:
    return str(text.relative_to(EMITTED).with_suffix(""))


def oldest_for(arch: str) -> Nvrtc:
    """The oldest is the strictest, but does not know Blackwell; the others compile vendored folders only, for time."""
    return VERSIONS[-1 if arch.startswith("sm_10") else 0]


@pytest.mark.sweep(every=9)
@pytest.mark.parametrize("text", TEXTS, ids=text_id)
def test_each_emitted_text(text: Path) -> None:
    arch = text.relative_to(EMITTED).parts[0]
    assert oldest_for(arch).compile(text, arch, ROOT / "headers", to_code=False) == ""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("text", [text for text in TEXTS if "sm_80" not in text.parts], ids=text_id)
def test_its_assembler_takes_the_text(text: Path) -> None:
    """It matters where wgmma may be serialised."""
    arch = text.relative_to(EMITTED).parts[0]
    assert oldest_for(arch).compile(text, arch, ROOT / "headers") == ""


# An atomic, a scan, a double, 8-bit floats, an assertion; no example has them.
ODD = """\
import tilelang.language as T


def odd(N, block=128):
    @T.prim_func
    def body(
        A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float8_e4m3fn"), S: T.Tensor((1,), "bfloat16"),
        D: T.Tensor((N,), "float64"), I: T.Tensor((N,), "int64"),
    ):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            tile = T.alloc_shared((block,), "float32")
            T.copy(A[bx * block], tile)
            T.cumsum(tile)
            for i in T.Parallel(block):
                T.device_assert(tile[i] < T.infinity("float32"), "no sum is infinite")
                T.atomic_add(S[0], T.Cast("bfloat16", tile[i]))
                T.atomic_max(I[bx * block + i], T.Cast("int64", tile[i]))
                D[bx * block + i] = T.exp(D[bx * block + i])
                B[bx * block + i] = T.Cast("float8_e4m3fn", T.abs(tile[i]))

    return body
"""


@pytest.mark.sweep("options")
@pytest.mark.parametrize("nvrtc", VERSIONS or [None], ids=lambda each: each.name if each else "none")
@pytest.mark.parametrize("options", [[], ["--single-header"]], ids=["headers", "one header"])
@pytest.mark.parametrize(
    ("example", "arch"), [("odd.py", "sm_80"), ("attention.py", "sm_90a"), ("chunk_state.py", "sm_90a")]
)
def test_vendored_folders(example: str, arch: str, options: list[str], nvrtc: Nvrtc, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    source = tmp_path / example if example == "odd.py" else ROOT / "examples" / example
    out = tmp_path / "out"
    assert main(["vendor", str(source), "--target", f"cuda:{arch}", "-o", str(out), *options]) == 0
    (text,) = (out / "kernels").glob("*.cu")
    assert nvrtc.compile(text, arch, out / "include") == ""
