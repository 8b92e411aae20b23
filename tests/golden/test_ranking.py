"""The ranking of measured settings by the model, on the shapes of benchmarks/shapes: its report card must not fall."""

import statistics
from pathlib import Path

import pytest

import fit_costs
from tile2cu.targets.costs import H200

CSV = Path(__file__).resolve().parents[2] / "benchmarks/shapes/h200_2026-11-24.csv"


@pytest.fixture(scope="module")
def shapes() -> fit_costs.Shapes:
    return fit_costs.read([CSV])


@pytest.mark.nightly
def test_choices_on_all_shapes(shapes: fit_costs.Shapes) -> None:
    card = fit_costs.card(H200, shapes, list(shapes.cublas))
    assert statistics.fmean(card.over_best) >= 0.95
    assert min(card.over_best) >= 0.80
    assert statistics.geometric_mean(card.over_cublas) >= 0.93
    pairs = zip(card.over_cublas, card.best_over_cublas, strict=True)
    assert all(found >= 0.75 or best < 0.75 for found, best in pairs)


def test_choices_on_shapes_that_no_constant_was_fitted_to(shapes: fit_costs.Shapes) -> None:
    card = fit_costs.card(H200, shapes, shapes.held_out)
    assert len(card.over_best) == 50
    assert statistics.fmean(card.over_best) >= 0.95
    assert statistics.geometric_mean(card.over_cublas) >= 0.93


def test_predicted_times_of_good_settings(shapes: fit_costs.Shapes) -> None:
    """Settings within 30 % of the best one's time: the prediction is off by 10 % in the mean."""
    errors = [
        abs(each.predicted(H200) / each.us - 1)
        for shape in shapes.held_out
        for each in shapes.timed[shape]
        if each.us < 1.3 * shapes.best(shape).us
    ]
    assert len(errors) > 300
    assert statistics.fmean(errors) < 0.1
