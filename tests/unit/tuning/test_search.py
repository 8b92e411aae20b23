"""Which settings are measured, and which is believed, on machines whose times are known."""

from collections.abc import Callable
from functools import cache, lru_cache, partial

import pytest

from tests.unit.chooser.kernels import EXAMPLES, example, gemm, tunable_text
from tests.unit.tuning.machine import Machine
from tile2cu.core.choice import Candidate
from tile2cu.core.errors import Tile2CuError
from tile2cu.tuning.record import Tuned, sorted_sizes
from tile2cu.tuning.run import candidates_of, legal_neighbours
from tile2cu.tuning.search import tune

SIZES = {"M": 64, "N": 4096, "K": 4096}
KERNEL = example("gemm_relu")
FAMILY = [example(name) for name in ("gemm_relu", "gemm_clusters", "gemm_few_rows")]
ranking = cache(partial(KERNEL.ranking, SIZES))
candidates = cache(partial(candidates_of, [KERNEL], SIZES))


def tuned(us_of: Callable[[Candidate], float], most: int = 16, **options: object) -> tuple[Tuned, Machine]:
    machine = Machine(us_of, **options)  # type: ignore[arg-type]
    return tune(sorted_sizes(SIZES), around, candidates(), machine, most=most), machine


around = lru_cache(maxsize=None)(partial(legal_neighbours, [KERNEL]))


@cache
def predicted(candidate: Candidate) -> float:
    return ranking().time_of(dict(candidate.setting)).us


def test_candidates_are_the_models_leaders_and_the_files_own() -> None:
    assert len(candidates().leaders) >= 8
    assert candidates().chosen == Candidate("gemm_relu.py", KERNEL.choice(SIZES).setting)
    first = candidates().first(12)
    assert first[:2] == [candidates().chosen, candidates().default]
    assert set(candidates().leaders[:8]) <= set(first)


def test_at_most_sixteen_settings_are_measured_interleaved() -> None:
    found, machine = tuned(predicted)
    assert len(found.figures) + len(found.rejected) <= 16
    assert candidates().default in {each.candidate for each in found.figures}
    assert [rounds for _, rounds in machine.races] == [3, 3, 11]
    assert all(len(settings) > 1 for settings, _ in machine.races)


def test_the_models_choice_stays_where_nothing_is_faster_by_one_percent() -> None:
    def flat(candidate: Candidate) -> float:
        return 10.0 if candidate == candidates().chosen else 9.95

    for seed in range(5):
        found, _ = tuned(flat, noise=0.02, seed=seed)
        assert (found.best.candidate, found.by) == (candidates().chosen, "model")


def test_a_setting_that_is_faster_by_more_wins() -> None:
    challenger = candidates().leaders[3]

    def one_faster(candidate: Candidate) -> float:
        return 9.0 if candidate == challenger else 10.0

    for seed in range(5):
        found, _ = tuned(one_faster, noise=0.02, seed=seed)
        assert (found.best.candidate, found.by) == (challenger, "measured")
        assert found.default_us == pytest.approx(10.0, rel=0.03)


def test_of_settings_that_are_as_fast_the_first_wins() -> None:
    """The model's choice is slow, and half of the others within 0.4 %: all tunings give the model's next."""
    fast = candidates().leaders[1:6]

    def several(candidate: Candidate) -> float:
        return 9.0 + 0.01 * (fast.index(candidate) % 3) if candidate in fast else 10.0

    winners = {tuned(several, noise=0.01, seed=seed)[0].best.candidate for seed in range(8)}
    assert winners == {next(each for each in candidates().first(12) if each in fast)}


def test_the_default_wins_where_the_model_is_wrong() -> None:
    found, _ = tuned(lambda candidate: 5.0 if candidate == candidates().default else 10.0)
    assert found.best.candidate == candidates().default
    assert found.best.us <= found.default_us


def test_settings_one_step_around_the_fastest_are_measured() -> None:
    own = dict(candidates().leaders[0].setting)
    better = {**own, "num_stages": own["num_stages"] - (1 if own["num_stages"] < 8 else 2)}
    target = Candidate("gemm_relu.py", tuple(better.items()))
    found, machine = tuned(lambda candidate: 5.0 if candidate == target else predicted(candidate))
    assert any(target in settings for settings, _ in machine.races)
    assert found.best.candidate == target


def test_wrong_results_are_never_timed() -> None:
    def wrong(candidate: Candidate) -> bool:
        return dict(candidate.setting)["block_N"] == own["block_N"] and candidate != candidates().default

    own = dict(candidates().chosen.setting)
    found, machine = tuned(predicted, wrong=wrong)
    assert found.rejected
    assert not any(wrong(each) for raced, _ in machine.races for each in raced)
    assert found.best.candidate not in dict(found.rejected)


def test_few_measurements_are_enough_for_the_choice_and_the_default() -> None:
    found, machine = tuned(predicted, most=2)
    assert {each.candidate for each in found.figures} == {candidates().chosen, candidates().default}


def test_time_that_is_over_ends_the_search_with_what_is_there() -> None:
    machine = Machine(predicted)
    found = tune(sorted_sizes(SIZES), around, candidates(), machine, out_of_time=lambda: True)
    assert len(machine.races) == 1
    assert found.best.candidate == candidates().chosen


def test_two_tunings_agree() -> None:
    """Noise of 2 % a round, of which pairs share most: the same setting, or one within 1 %."""
    found = [tuned(predicted, noise=0.02, seed=seed)[0] for seed in range(12)]
    least = min(predicted(each.best.candidate) for each in found)
    assert all(predicted(each.best.candidate) <= 1.02 * least for each in found)
    assert sum(each.best.setting == found[0].best.setting for each in found) >= 11


def test_a_kernel_without_a_model_is_searched_from_its_own_values() -> None:
    kernel = example("gemv", "cuda:sm_80")
    sizes = {var.name: 512 for var in kernel.program.sizes}
    candidates = candidates_of([kernel], sizes)
    assert candidates.leaders == () and candidates.chosen == candidates.default
    machine = Machine(lambda candidate: 100.0 / dict(candidate.setting)["block_N"])
    found = tune(sorted_sizes(sizes), partial(legal_neighbours, [kernel]), candidates, machine)
    assert dict(found.best.setting)["block_N"] == 8
    assert found.by == "measured"


def test_configurations_of_autotune_are_candidates() -> None:
    text = (EXAMPLES / "gemm_relu.py").read_text(encoding="utf-8")
    listed = "[{'block_M': 64, 'block_N': n, 'num_stages': 2} for n in (32, 64)]"
    text = text.replace("@tilelang.jit", f"@tilelang.autotune(configs={listed})\n@tilelang.jit")
    candidates = candidates_of([tunable_text(text)], SIZES)
    assert [dict(each.setting)["block_N"] for each in candidates.listed] == [32, 64]
    listed_settings = [dict(each.setting) for each in candidates.listed]
    assert all(each["threads"] == 128 and each["num_stages"] == 2 for each in listed_settings)
    assert set(candidates.listed) <= set(candidates.first(16))


def test_a_kernel_without_tile_parameters() -> None:
    with pytest.raises(Tile2CuError, match="has no tile parameters") as caught:
        candidates_of([tunable_text(gemm("block_M=64, block_N=64"), block_M=64, block_N=64)], SIZES)
    assert caught.value.code == "T2C-C022"


def test_the_best_of_each_file_of_a_family_is_raced() -> None:
    """The model takes parts of K for so few rows; whole ones are faster on this machine."""
    candidates = candidates_of(FAMILY, {"M": 16, "N": 4096, "K": 4096})
    assert candidates.chosen.file != "gemm_relu.py"
    assert {each.file for each in candidates.first(12)} == {"gemm_relu.py", "gemm_clusters.py", "gemm_few_rows.py"}
    machine = Machine(lambda candidate: 9.0 if candidate.file == "gemm_relu.py" else 10.0)
    found = tune((), partial(legal_neighbours, FAMILY), candidates, machine)
    assert (found.best.file, found.by) == ("gemm_relu.py", "measured")
    assert len(found.figures) + len(found.rejected) <= 16


def test_a_file_that_is_predicted_to_take_twice_as_long_is_not_raced() -> None:
    candidates = candidates_of(FAMILY, {"M": 8192, "N": 4096, "K": 4096})
    assert not any(each.file == "gemm_few_rows.py" for each in candidates.first(12))
