"""Registers change hands within a block: consumers and producer together have no more than it was started with."""

from dataclasses import dataclass

import pytest

from tile2cu.rules.schedule import register_budget
from tile2cu.rules.schedule.register_budget import _GATHERING_REGISTERS, _PRODUCER_REGISTERS, share


@dataclass(frozen=True)
class Launched:
    threads: int


@pytest.mark.parametrize("groups", range(1, 8))
@pytest.mark.parametrize("gathers", [False, True])
def test_what_is_asked_for_is_there(monkeypatch: pytest.MonkeyPatch, gathers: bool, groups: int) -> None:
    monkeypatch.setattr(register_budget, "_gathers", lambda launch: gathers)
    most = share(Launched(128 * groups))  # type: ignore[arg-type]
    started_with = 65536 // (128 * (groups + 1)) // 8 * 8  # a thread, as __launch_bounds__ lets ptxas give
    assert most % 8 == 0
    own = _GATHERING_REGISTERS if gathers else _PRODUCER_REGISTERS
    assert groups * most + own <= (groups + 1) * started_with
