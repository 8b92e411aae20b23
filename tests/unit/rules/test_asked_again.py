"""Rules are asked again only where a fact that they have read has changed: else they state nothing new."""

from collections import Counter

import pytest

from tests.conformance.test_reference import example
from tile2cu.core.facts import Subject
from tile2cu.rules import RULES, resolve
from tile2cu.rules.engine import Rule, _Decider
from tile2cu.targets import find


@pytest.mark.parametrize("name", ["attention.py", "gemm_relu.py", "row_softmax.py"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_a_rule_that_is_not_asked_would_state_nothing_new(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[bool] = Counter()
    apply = _Decider._apply

    def checked(decider: _Decider, rule: Rule, subject: Subject) -> bool:
        left_out = (rule, id(subject)) in decider.current
        seen[left_out] += 1
        if not left_out:
            return apply(decider, rule, subject)
        assert not decider._asked(rule, subject), rule.id
        decider.seen[rule].facts.read_since()
        return False

    monkeypatch.setattr(_Decider, "_apply", checked)
    program = example(name)
    for launch in program.launches:
        resolve(program, launch, find(target), RULES)
    assert seen[True] and seen[False]
