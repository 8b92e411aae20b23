"""The order of rules follows from what they declare: any other order that it allows gives the same bytes.

`--rule-orders N` tries N orders: few of them, each for a part of the examples, more, for all. A failure names the seed
of its order. Of few orders, heads have the lines about other values of tile parameters from emitted/.
"""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from tests.golden.cases import EMITTED, GOLDEN, Golden
from tile2cu.core.errors import Tile2CuError
from tile2cu.rules import RULES, Rule, engine
from tile2cu.rules.rule_order import groups

_PARTS = 9
_Groups = tuple[tuple[Rule, ...], ...]


def _numbers(seed: int) -> dict[str, float]:
    random = Random(seed)
    return {rule.id: random.random() for rule in RULES}


def _changed(examples: Sequence[Golden], *, whole: bool = True) -> Iterator[str]:
    """The files of examples that are emitted otherwise than emitted/ holds them, or not at all.

    Unless `whole`, other values of tile parameters are not decided.
    """
    for golden in examples:
        try:
            files = golden.files_of(golden.emitted() if whole else golden.quickly_emitted())
        except (Tile2CuError, LookupError, AssertionError) as error:
            yield f"{golden.folder}/{golden.example}: {error!r}"
            continue
        yield from (name for name, text in files.items() if (EMITTED / name).read_text(encoding="utf-8") != text)


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
    assert not list(_changed(GOLDEN[order::_PARTS], whole=False) if few else _changed(GOLDEN))


def test_an_order_that_the_declarations_forbid_changes_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_(rules: tuple[Rule, ...]) -> _Groups:
        return tuple((rule,) for rule in reversed(rules))

    monkeypatch.setattr(engine, "in_order", reversed_)
    assert next(_changed(GOLDEN[::_PARTS]), None)  # the first is enough
