"""The registers that a source states for the operands of its MMAs, beside those that headers/tl gives them.

Each `tl::gemm` of a source becomes a static_assert behind it, on the words that tl::MfmaSteps has for these types.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.amdgcn.build import run
from tests.amdgcn.chips import require_compiler
from tests.golden.source_text import arguments
from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import find
from tile2cu_runtime.hip import code_object_commands

ROOT = Path(__file__).resolve().parents[2]
EMITTED = [
    path for path in sorted((ROOT / "emitted/hip").rglob("*.hip")) if "tl::gemm(" in path.read_text(encoding="utf-8")
]
TRANSPOSED = {"transpose_A": True, "transpose_B": True}
OTHERS: list[tuple[str, str, dict[str, object]]] = [
    ("gfx942", "gemm.py", TRANSPOSED),
    ("gfx90a", "gemm.py", {"transpose_A": True, "threads": 256}),
    ("gfx942", "gemm.py", {"dtype": "int8", "out_dtype": "int32", "accum_dtype": "int32", "transpose_B": True}),
    ("gfx942", "gemm_relu.py", {"block_K": 16}),
    ("gfx942", "flash_decoding.py", {"dim": 128}),
    ("gfx942", "dequant.py", {}),
    ("gfx942", "mla_decode.py", {"block_N": 32, "num_split": 4, "block_H": 16, "threads": 64, "zero_tail": True}),
    ("gfx90a", "attention.py", {"block_M": 64, "threads": 256, "is_causal": True}),
    ("gfx950", "attention.py", {"block_M": 128, "threads": 256, "is_causal": False}),
]
STATED = re.compile(r"; operands from LDS take (\d+) VGPRs, for (\d+) steps? of (\d+) along K")


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("path", EMITTED, ids=lambda path: str(path.relative_to(ROOT / "emitted")))
def test_emitted(path: Path, tmp_path: Path) -> None:
    check(path.read_text(encoding="utf-8"), path.stem, "gfx942", path.parent, tmp_path)


@pytest.mark.sweep("chip")
@pytest.mark.parametrize(("chip", "file", "bindings"), OTHERS)
def test_other_shapes(
    chip: str, file: str, bindings: dict[str, object], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Operands across K, of 8 bits, and of instructions of twice the K."""
    require_compiler(chip, request)
    options = EmitOptions(style="tl")
    found = 0
    for emitted in emit_text(
        ROOT / "examples" / file, kernel=None, target=find(f"hip:{chip}"), bindings=bindings, options=options
    ):
        for name, text in emitted.files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        text = emitted.files[f"{emitted.kernel}.hip"]
        if "tl::gemm(" in text:
            found += check(text, emitted.kernel, chip, tmp_path, tmp_path)
    assert found > 0


def check(text: str, name: str, chip: str, headers: Path, folder: Path) -> int:
    """How many MMAs of a source state what they take; a compiler checks each of them."""
    pieces, end, count = [], 0, 0
    for call in re.finditer(r"\btl::gemm\(", text):
        comment = " ".join(re.split(r"\s*\n\s*// ", text[end : call.start()]))
        stated = STATED.findall(comment)
        pieces += [text[end : call.start()], asserted(arguments(text, call.end() - 1), stated[-1] if stated else None)]
        end, count = call.start(), count + bool(stated)
    source = folder / f"{name}_checked.hip"
    source.write_text("".join((*pieces, text[end:])), encoding="utf-8")
    (first, *_) = code_object_commands(str(source), architecture=chip)
    run([*first, "-w", "-I", str(headers), "-fsyntax-only"])
    return count


def asserted(call: list[str], stated: tuple[str, str, str] | None) -> str:
    """What tl::MfmaSteps has for the operands of a call: the words that are stated, or none."""
    a, b, c = call[:3]
    operands = (f"std::decay_t<decltype(tl::mfma_operand_{side}({each}))>" for side, each in (("a", a), ("b", b)))
    steps = f"tl::MfmaSteps<{', '.join(operands)}, typename std::decay_t<decltype({c})>::Layout>"
    if stated is None:
        return f"static_assert({steps}::words == 0); "
    words, held, extent = stated
    expected = {"words": words, f"count < 2 ? {steps}::count : 2": held, "Order::step": extent}
    return "".join(f"static_assert(({steps}::{member}) == {number}); " for member, number in expected.items())
