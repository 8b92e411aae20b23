"""Where ptxas places what runs under a product in flight, of which a text says nothing."""

import re
from pathlib import Path

import pytest

import tile2cu
from tests.compile.test_held import EMITTED, compiled

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.nightly
def test_weights_are_decoded_between_the_start_of_a_product_and_its_end(nvcc: str, nvdisasm: str) -> None:
    """A turn's loads come before its first wgmma, and most multiplications by scales behind the last.

    Nothing in the text says so: ptxas decides. With loads behind wgmmas a kernel was 3 to 7 % slower on an H200.
    """
    _, text = compiled(nvcc, nvdisasm, EMITTED / "linear_int4_prefill.cu")
    lines = text.splitlines()
    end = next(at for at, line in enumerate(lines) if "WARPGROUP.DEPBAR" in line)
    start = max(at for at, line in enumerate(lines[:end]) if "WARPGROUP.ARRIVE" in line)
    products = [at for at in range(start, end) if "HGMMA" in lines[at]]
    under = sum("HMUL2" in line or "HFMA2" in line for line in lines[products[-1] : end])
    before = sum("HMUL2" in line or "HFMA2" in line for line in lines[start : products[-1]])
    assert len(products) == 4 and not any("LDS" in line for line in lines[start:end])
    assert under > 2 * before


@pytest.mark.nightly
@pytest.mark.parametrize("weights", ["int4", "fp4"])
def test_with_known_sizes_wgmmas_are_started_as_close_together(
    weights: str, nvcc: str, nvdisasm: str, tmp_path: Path
) -> None:
    """K is an argument of the kernel: as a constant, 50 rather than 40 instructions were between the four wgmmas.

    A kernel was 4 to 7 % slower then on an H200.
    """
    between = []
    for place, sizes in (("open", {}), ("known", {"M": 4096, "N": 8192, "K": 8192})):
        path, name = EXAMPLES / "linear_int4_prefill.py", "linear_int4_prefill"
        emitted = tile2cu.emit(path, name, target="cuda:sm_90a", weights=weights, **sizes)[name]
        (tmp_path / place).mkdir()
        for file, content in emitted.files.items():
            (tmp_path / place / file).write_text(content, encoding="utf-8")
        _, text = compiled(nvcc, nvdisasm, tmp_path / place / f"{name}.cu")
        lines = text.splitlines()
        end = next(at for at, line in enumerate(lines) if "WARPGROUP.DEPBAR" in line)
        start = max(at for at, line in enumerate(lines[:end]) if "WARPGROUP.ARRIVE" in line)
        products = [at for at in range(start, end) if "HGMMA" in lines[at]]
        assert len(products) == 4
        between.append(products[-1] - products[0])
    assert between[1] <= 1.1 * between[0]


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("text", ["attention.cu", "causal/attention.cu"])
def test_a_product_is_awaited_behind_the_vote_on_what_it_is_scaled_by(text: str, nvcc: str, nvdisasm: str) -> None:
    """Of two products in flight the older one's scores give the maxima and the vote, under the younger one.

    ptxas moves a wait up to the last arrival that depends on what was computed
    (`TmaPipeline::consumer_release_after`); a wait in front of the maxima costs 2 to 5 % on an H200.
    """
    _, sass = compiled(nvcc, nvdisasm, EMITTED / text)
    order = re.findall(r"HGMMA|WARPGROUP.DEPBAR|FMNMX|VOTE\.ANY|MUFU.EX2", sass)
    votes = [at for at, each in enumerate(order) if each == "VOTE.ANY"]
    turns = [order[max(at for at in range(vote) if order[at] == "HGMMA") : vote] for vote in votes]
    overlapping = [turn for vote, turn in zip(votes, turns, strict=True) if order[vote:].index("WARPGROUP.DEPBAR") < 4]
    assert overlapping and all(turn.count("WARPGROUP.DEPBAR") == 1 for turn in overlapping)
    assert all(turn.count("FMNMX") > 60 for turn in overlapping)
