"""What is chosen is legal, the same in every process, and stated; kernels that the model does not predict stay."""

import subprocess
import sys

import pytest

import tile2cu
from tests.unit.chooser.kernels import EXAMPLES, example
from tile2cu.api import resolved_kernels
from tile2cu.chooser.choose import NoModel, choose
from tile2cu.choosing import implied_tiles
from tile2cu.core.choice import Choice
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import EmitOptions
from tile2cu.targets import SM80, SM90A

SIZES = {"M": 64, "N": 4096, "K": 4096}
GEMM = EXAMPLES / "gemm_relu.py"


def test_the_choice_is_the_best_of_what_the_rules_accept() -> None:
    kernel = example("gemm_relu")
    ranking = kernel.ranking(SIZES)
    first, *others = ranking.best(4)
    assert len(others) == 3 and all(each.decided for each in (first, *others))
    assert [each.us for each in others] == sorted(each.us for each in others)
    assert first.us < ranking.default.us
    decision = kernel.decide(dict(first.setting))  # legal: no error
    assert sum(each.shared_bytes for each in decision.schedules) <= SM90A.shared_limit


@pytest.mark.parametrize(("m", "rows"), [(1, 16), (64, 64), (8192, 128)])
def test_rows_of_a_tile_follow_those_of_the_problem(m: int, rows: int) -> None:
    chosen = dict(example("gemm_relu").choice({**SIZES, "M": m}).setting)
    assert chosen["block_M"] == rows if m < 128 else chosen["block_M"] >= rows


def test_bound_and_run_time_sizes_choose_alike() -> None:
    bound = example("gemm_relu", **SIZES).choice({})
    assert bound == example("gemm_relu").choice(SIZES)


def test_given_values_are_kept() -> None:
    assert "block_N" not in dict(example("gemm_relu", block_N=256).choice(SIZES).setting)


@pytest.mark.parametrize(
    ("name", "target", "why"),
    [
        ("mla_decode", "cuda:sm_90a", "GEMMs, and the model is fitted on kernels with one"),
        ("attention_block_sparse", "cuda:sm_90a", "depends on values in memory"),
        ("gemm_relu", "cuda:sm_80", "no measured constants for cuda:sm_80"),
        ("rope", "cuda:sm_90a", "a loop, a branch or a shared tile without a GEMM"),
    ],
)
def test_a_kernel_without_a_model(name: str, target: str, why: str) -> None:
    with pytest.raises(NoModel, match=why):
        example(name, target).ranking({})


@pytest.mark.nightly
def test_one_choice_in_every_process() -> None:
    code = (
        "from tests.unit.chooser.kernels import example;"
        f"print(example('gemm_relu').choice({SIZES}), example('gemm_few_rows').choice({SIZES}))"
    )
    seeds = [{"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(sys.path)} for seed in (1, 2)]
    found = {
        subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True).stdout for env in seeds
    }
    assert len(found) == 1


def emitted(**bindings: object) -> tile2cu.api.Emitted:  # type: ignore[name-defined]
    from tile2cu.api import emit_text

    (found,) = emit_text(GEMM, kernel=None, target=SM90A, bindings=bindings, options=EmitOptions(tiles="auto"))
    return found


def test_the_head_states_the_choice_and_the_command() -> None:
    head = " ".join(line.strip("/ ") for line in emitted(**SIZES).source.splitlines()[:20])
    assert "-D M=64 -D N=4096 -D K=4096 --auto" in head
    assert "Tiles: block_M = 64, block_N = " in head
    assert "us predicted for H200" in head
    assert "next best: " in head
    assert "the file's block_M = 128" in head
    assert "[schedule.tiles.model]" in head


def test_the_manifest_and_explain_state_it() -> None:
    assert '"rule": "schedule.tiles.model"' in emitted(**SIZES).manifest
    (launches,) = resolved_kernels(GEMM, kernel=None, target=SM90A, bindings=SIZES, tiles="auto")
    assert isinstance(launches[0].program.choice, Choice)
    assert launches[0].program.bindings == tuple(SIZES.items())


def test_open_sizes_are_an_error() -> None:
    with pytest.raises(Tile2CuError) as caught:
        emitted(N=4096)
    assert caught.value.code == "T2C-C020"
    assert caught.value.help == "give each with -D, as -D M=4096 -D K=4096"


def test_when_load_chooses_by_itself() -> None:
    text = GEMM.read_text(encoding="utf-8")

    def implied(target: object = SM90A, **bindings: object) -> str:
        return implied_tiles(GEMM, text, None, target, bindings)  # type: ignore[arg-type]

    assert implied(**SIZES) == "auto"
    assert implied(M=64) == "default"
    assert implied(**SIZES, block_M=64) == "default"
    assert implied(SM80, **SIZES) == "default"


def test_a_setting_that_saves_little_is_not_taken() -> None:
    kernel = example("gemm_relu", block_N=64, block_K=128, num_stages=6, threads=128, block_M=64)
    with pytest.raises(NoModel, match="no parameter"):
        kernel.ranking(SIZES)
    kernel = example("gemm_relu")
    ranking = kernel.ranking(SIZES)
    best = ranking.best(1)[0]
    own = type(ranking.default)(setting=best.setting, times=best.times, works=best.works, decided=True)
    ranking._own = own  # the file's own is as good as the best
    assert choose(ranking, kernel.costs, SIZES).setting == own.setting
