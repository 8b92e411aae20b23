"""Where ptxas places what runs under a product in flight, of which a text says nothing."""

import re
from pathlib import Path

import pytest

from tests.compile.test_held import EMITTED, compiled


def test_weights_are_decoded_between_the_start_of_a_product_and_its_end(
    nvcc: str, nvdisasm: str, tmp_path: Path
) -> None:
    """A turn's loads come before its first wgmma, and most multiplications by scales behind the last.

    Nothing in the text says so: ptxas decides. With loads behind wgmmas a kernel was 3 to 7 % slower on an H200.
    """
    _, text = compiled(nvcc, nvdisasm, EMITTED / "linear_int4_prefill.cu", tmp_path)
    lines = text.splitlines()
    end = next(at for at, line in enumerate(lines) if "WARPGROUP.DEPBAR" in line)
    start = max(at for at, line in enumerate(lines[:end]) if "WARPGROUP.ARRIVE" in line)
    products = [at for at in range(start, end) if "HGMMA" in lines[at]]
    under = sum("HMUL2" in line or "HFMA2" in line for line in lines[products[-1] : end])
    before = sum("HMUL2" in line or "HFMA2" in line for line in lines[start : products[-1]])
    assert len(products) == 4 and not any("LDS" in line for line in lines[start:end])
    assert under > 2 * before


@pytest.mark.parametrize("text", ["attention.cu", "causal/attention.cu"])
def test_a_product_is_awaited_behind_the_vote_on_what_it_is_scaled_by(
    text: str, nvcc: str, nvdisasm: str, tmp_path: Path
) -> None:
    """Of two products in flight the older one's scores give the maxima and the vote, under the younger one.

    ptxas moves a wait up to the last arrival that depends on what was computed
    (`TmaPipeline::consumer_release_after`); a wait in front of the maxima costs 2 to 5 % on an H200.
    """
    _, sass = compiled(nvcc, nvdisasm, EMITTED / text, tmp_path)
    order = re.findall(r"HGMMA|WARPGROUP.DEPBAR|FMNMX|VOTE\.ANY|MUFU.EX2", sass)
    votes = [at for at, each in enumerate(order) if each == "VOTE.ANY"]
    turns = [order[max(at for at in range(vote) if order[at] == "HGMMA") : vote] for vote in votes]
    overlapping = [turn for vote, turn in zip(votes, turns, strict=True) if order[vote:].index("WARPGROUP.DEPBAR") < 4]
    assert overlapping and all(turn.count("WARPGROUP.DEPBAR") == 1 for turn in overlapping)
    assert all(turn.count("FMNMX") > 60 for turn in overlapping)
