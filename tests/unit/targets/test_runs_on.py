"""Whose code runs where."""

import pytest

from tile2cu.targets import find


@pytest.mark.parametrize(
    ("code", "chip", "runs"),
    [
        ("cuda:sm_80", "cuda:sm_89", True),
        ("cuda:sm_80", "cuda:sm_90a", True),
        ("cuda:sm_89", "cuda:sm_80", False),
        ("cuda:sm_90a", "cuda:sm_90a", True),
        ("cuda:sm_90a", "cuda:sm_100a", False),
        ("cuda:sm_80", "cuda:sm_100a", True),
        ("cuda:sm_90a", "cuda:sm_89", False),
        ("hip:gfx942", "hip:gfx942", True),
        ("hip:gfx942", "hip:gfx950", False),
        ("hip:gfx90a", "hip:gfx942", False),
        ("cuda:sm_80", "hip:gfx942", False),
    ],
)
def test_code_runs_on(code: str, chip: str, runs: bool) -> None:
    assert find(code).code_runs_on(find(chip)) is runs
