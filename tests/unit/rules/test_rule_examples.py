"""Every example of every rule is true, and is that rule's doing."""

import pytest

from tests.unit.rules.kernels import resolved, subject
from tile2cu.rules import RULES, Example, Rule

CASES = [pytest.param(rule, example, id=f"{rule.id}-{n}") for rule in RULES for n, example in enumerate(rule.examples)]


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_example(rule: Rule, example: Example) -> None:
    context = resolved(example.statements, target=example.target, threads=example.threads, cluster=example.cluster)
    about = subject(context, example.about)
    (fact,) = (fact for fact in context.facts if fact.about is about and fact.what == example.what)
    assert str(fact.value) == example.value
    assert fact.rule == rule.id
