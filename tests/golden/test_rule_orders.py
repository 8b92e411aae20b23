"""The order of rules follows from what they declare: any other order that it allows gives the same bytes.

`--rule-orders N` tries N orders; of three, each for a third of the examples, of more, for all. A failure names the seed
of its order.
"""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from tests.golden.cases import GOLDEN, ROOT, Golden
from tile2cu.core.errors import Tile2CuError
from tile2cu.rules import RULES, Rule, engine
from tile2cu.rules.rule_order import groups

_PARTS = 3
_Groups = tuple[tuple[Rule, ...], ...]


def _numbers(seed: int) -> dict[str, float]:
    random = Random(seed)
    return {rule.id: random.random() for rule in RULES}


def _changed(examples: Sequence[Golden]) -> Iterator[str]:
    """The files of examples that are emitted otherwise than emitted/ holds them, or not at all."""
    for golden in examples:
        try:
            files = golden.files()
        except (Tile2CuError, LookupError, AssertionError) as error:
            yield f"{golden.folder}/{golden.example}: {error!r}"
            continue
        yield from (
            name for name, text in files.items() if (ROOT / "emitted" / name).read_text(encoding="utf-8") != text
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "order" in metafunc.fixturenames:
        metafunc.parametrize("order", range(metafunc.config.getoption("--rule-orders")))


def test_an_order_that_the_declarations_allow_changes_no_byte(
    order: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = _numbers(order)
    few = request.config.getoption("--rule-orders") <= _PARTS

    def shuffled(rules: tuple[Rule, ...]) -> _Groups:
        return groups(rules, prefer=lambda rule: numbers[rule.id])

    monkeypatch.setattr(engine, "in_order", shuffled)
    assert not [*_changed(GOLDEN[order::_PARTS] if few else GOLDEN)]


def test_an_order_that_the_declarations_forbid_changes_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_(rules: tuple[Rule, ...]) -> _Groups:
        return tuple((rule,) for rule in reversed(rules))

    monkeypatch.setattr(engine, "in_order", reversed_)
    assert next(_changed(GOLDEN[::_PARTS]), None)  # the first is enough
