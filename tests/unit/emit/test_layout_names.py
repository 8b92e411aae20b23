"""Layouts have the names of the sizes that tiles have, not of those that are equal by chance."""

from pathlib import Path

import pytest

from tile2cu import emit

EXAMPLE = Path(__file__).parents[3] / "examples" / "attention.py"


@pytest.mark.parametrize(
    ("target", "kind"),
    [("cuda:sm_80", "Mma"), ("cuda:sm_90a", "Wgmma"), ("hip:gfx942", "Mfma")],
)
def test_tiles_of_equal_numbers_keep_their_own_sizes(target: str, kind: str) -> None:
    """A block of as many keys as a head has elements: the scores are (block_M, block_N), the output (block_M, dim)."""
    bindings = {"dim": 64, "block_N": 64, "threads": 256 if "hip" in target else 128}
    files = emit(EXAMPLE, target=target, **bindings)["attention"].files
    text = next(text for name, text in files.items() if name.endswith((".cu", ".hip")))
    assert f"using acc_s_layout = tl::{kind}Accumulator<block_M, block_N, " in text
    assert f"using acc_o_layout = tl::{kind}Accumulator<block_M, dim, " in text
    assert "Fragment<float, acc_o_layout> acc_o;" in text
    scaled = "tl::parallel(acc_o_layout{}, [&](auto i, auto j) { acc_o(i, j) *= scores_scale(i); });"
    if "hip" in target:
        scaled = "tl::scale_rows_if(tl::any_changed(scores_max_prev, scores_max), acc_o, scores_scale);"
    assert scaled in text
    assert text.count("// here the same as acc_s_layout: the sizes are equal") == 1


@pytest.mark.parametrize(("target", "most"), [("cuda:sm_90a", 255), ("hip:gfx90a", 512)])
def test_more_registers_than_a_thread_has_are_said(target: str, most: int) -> None:
    gemm = EXAMPLE.with_name("gemm_relu.py")
    for block, too_many in ((64, False), (512, True)):
        files = emit(gemm, target=target, block_M=block, block_N=256, num_stages=0, threads=128)["gemm_relu"].files
        said = f"per thread for tiles, of {most} that it can have: some go through memory --"
        assert (said in next(iter(files.values()))) == too_many
