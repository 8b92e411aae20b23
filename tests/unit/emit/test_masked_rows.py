"""What heads say of rows that a mask takes out, where loads end with the mask, and where they end elsewhere."""

from pathlib import Path

import pytest

import tile2cu

EXAMPLE = Path(__file__).parents[3] / "examples" / "flash_decoding.py"
LIMIT = "start + i < length"
MASK = "start + j < length"


def heads(text: str, folder: Path) -> list[str]:
    """The heads of the source and of the header, each in one line."""
    (folder / EXAMPLE.name).write_text(text, encoding="utf-8")
    (emitted,) = tile2cu.emit(folder / EXAMPLE.name, target="cuda:sm_80", dim=64, group=8, zero_tail=True).values()
    files = [each for name, each in emitted.files.items() if name.endswith((".cu", ".h"))]
    return [" ".join(line.removeprefix("// ") for line in each.splitlines()) for each in files]


@pytest.mark.parametrize(
    ("limit", "mask", "zeroed"),
    [
        (LIMIT, MASK, True),
        ("i < length - start", MASK, True),
        ("i < length - start - 1", MASK, True),
        ("start + i < length + 1", MASK, False),
        ("i < length - start + 1", MASK, False),
        (LIMIT, "start + j < length - 1", False),
        ("i < length - first", MASK, False),
    ],
)
def test_masked_rows_are_zero_where_no_load_reaches_them(limit: str, mask: str, zeroed: bool, tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert LIMIT in text and MASK in text
    found = heads(text.replace(LIMIT, limit).replace(MASK, mask), tmp_path)
    assert len(found) == 2
    for head in found:
        assert ("Masked rows of V (lengths decides which) are not loaded" in head) is zeroed
        assert ("NaN or infinity in them gives NaN" in head) is not zeroed


MASKED = "Masked rows of K (lengths decides which) are loaded, but minus infinity replaces their scores"


def test_scores_of_masked_rows_are_replaced_where_nothing_reads_them_before(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    (gemm,) = (each for each in text.splitlines() if "T.gemm(Q_shared, K_shared, acc_s" in each)
    indent = gemm[: gemm.index("T.gemm")]
    first = text.index(f"{indent}for i, j in T.Parallel(block_H, block_N):\n")
    mask = text[first : text.index(gemm)]
    assert MASK in mask and mask.count("\n") == 2
    written = mask.replace(", 0, ", ", acc_s[i, j], ")
    reads = f"{indent}T.reduce_max(acc_s, scores_max, dim=1, clear=False)\n"
    line = gemm + "\n"
    for changed, replaced in ((line + written, True), (line + reads + written, False)):
        for head in heads(text.replace(mask + line, changed), tmp_path):
            assert (MASKED in head) is replaced
