"""The order of rules follows from what they declare: any other order that it allows gives the same bytes.

`--rule-orders N` tries N orders, each of all examples; a failure names the seed of its order.
"""

from random import Random

import pytest

from tests.golden.cases import GOLDEN, ROOT
from tile2cu.core.errors import Tile2CuError
from tile2cu.rules import RULES, Rule, engine
from tile2cu.rules.rule_order import groups

_Groups = tuple[tuple[Rule, ...], ...]


def _numbers(seed: int) -> dict[str, float]:
    random = Random(seed)
    return {rule.id: random.random() for rule in RULES}


def _changed() -> list[str]:
    """The files of the examples that are emitted otherwise than emitted/ holds them, or not at all."""
    found = []
    for golden in GOLDEN:
        try:
            files = golden.files()
        except (Tile2CuError, LookupError, AssertionError) as error:
            found.append(f"{golden.folder}/{golden.example}: {error!r}")
            continue
        found += [name for name, text in files.items() if (ROOT / "emitted" / name).read_text(encoding="utf-8") != text]
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "order" in metafunc.fixturenames:
        metafunc.parametrize("order", range(metafunc.config.getoption("--rule-orders")))


def test_an_order_that_the_declarations_allow_changes_no_byte(order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = _numbers(order)

    def shuffled(rules: tuple[Rule, ...]) -> _Groups:
        return groups(rules, prefer=lambda rule: numbers[rule.id])

    monkeypatch.setattr(engine, "in_order", shuffled)
    assert not _changed()


def test_an_order_that_the_declarations_forbid_changes_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_(rules: tuple[Rule, ...]) -> _Groups:
        return tuple((rule,) for rule in reversed(rules))

    monkeypatch.setattr(engine, "in_order", reversed_)
    assert _changed()
