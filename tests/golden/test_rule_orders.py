"""The order of rules follows from what they declare: any other order that it allows gives the same bytes.

`--rule-orders N` tries N orders; of three, each for a third of the examples, of more, for all. A failure names the seed
of its order. Of three orders, heads have the lines about other values of tile parameters from emitted/: the rules
decide the examples alone, in a quarter of the time.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest

from tests.golden.cases import EMITTED, GOLDEN, Golden, about_values
from tile2cu import emitter
from tile2cu.core.errors import Tile2CuError
from tile2cu.emitter import Resolved
from tile2cu.rules import RULES, Rule, engine
from tile2cu.rules.rule_order import groups

_PARTS = 3
_Groups = tuple[tuple[Rule, ...], ...]


def _numbers(seed: int) -> dict[str, float]:
    random = Random(seed)
    return {rule.id: random.random() for rule in RULES}


def _stated(golden: Golden) -> Callable[[tuple[Resolved, ...], object, object], tuple[str, ...]]:
    """The lines about other values that emitted/ has, in place of `emitter.in_words`."""

    def lines(launches: tuple[Resolved, ...], registers: object, printer: object, write: object) -> tuple[str, ...]:
        name = f"{launches[0].program.name}{launches[0].target.suffix}"
        return about_values((EMITTED / golden.folder / name).read_text(encoding="utf-8"))

    return lines


def _changed(examples: Sequence[Golden], patch: pytest.MonkeyPatch | None = None) -> Iterator[str]:
    """The files of examples that are emitted otherwise than emitted/ holds them, or not at all.

    With `patch`, other values of tile parameters are not decided.
    """
    for golden in examples:
        if patch:
            patch.setattr(emitter, "in_words", _stated(golden))
        try:
            files = golden.files()
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
    changed = _changed(GOLDEN[order::_PARTS], monkeypatch) if few else _changed(GOLDEN)
    assert not list(changed)


def test_an_order_that_the_declarations_forbid_changes_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_(rules: tuple[Rule, ...]) -> _Groups:
        return tuple((rule,) for rule in reversed(rules))

    monkeypatch.setattr(engine, "in_order", reversed_)
    assert next(_changed(GOLDEN[::_PARTS]), None)  # the first is enough
