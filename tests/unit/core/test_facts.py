"""Facts: keys have types, that hold for subjects and values, and names that are unique for a subject."""

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core import decisions
from tile2cu.core.decisions import BLOCK_WARPS, STREAMING, WARPS
from tile2cu.core.facts import Fact, Facts, Key
from tile2cu.core.layout import Warps
from tile2cu.core.program import Launch

CATALOGUE = {name: key for name, key in vars(decisions).items() if isinstance(key, Key)}


def _launch() -> Launch:
    return resolved('S = T.alloc_shared((64,), "float32")\nT.clear(S)').launch


def test_keys_of_one_name_are_apart() -> None:
    launch, facts = _launch(), Facts()
    assert BLOCK_WARPS.name == WARPS.name
    assert facts.add(Fact(launch, BLOCK_WARPS, 4, "rule", launch.span))
    assert facts.get(launch, BLOCK_WARPS) == 4 and facts.get(launch, WARPS) is None


@pytest.mark.parametrize(("key", "value"), [(WARPS, Warps(1, 1)), (BLOCK_WARPS, "4"), (STREAMING, ())])
def test_a_subject_or_a_value_of_another_type_is_an_error_of_the_rule(key: Key[object], value: object) -> None:
    launch = _launch()
    with pytest.raises(TypeError, match=f"`rule` states a {type(value).__name__} about Launch under the key"):
        Facts().add(Fact(launch, key, value, "rule", launch.span))


def test_each_key_says_in_a_line_what_it_means() -> None:
    assert CATALOGUE and all(key.doc and "\n" not in key.doc for key in CATALOGUE.values())


def test_keys_of_one_printed_name_have_other_subjects_or_values() -> None:
    kinds = [(key.name, key.about, key.value) for key in CATALOGUE.values()]
    assert len(set(kinds)) == len(kinds)
