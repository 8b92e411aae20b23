"""The table of rules is complete: every rule says what it gives, where it is from, and shows it at work."""

import re

import pytest

from tile2cu.rules import RULES, Rule


def test_ids_are_unique_and_well_formed() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(\.[a-z0-9-]+){2}", id) for id in ids)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_documents_itself(rule: Rule) -> None:
    first, *rest = rule.doc.strip().splitlines()
    assert first.endswith("."), "one sentence first"
    assert any(line.strip().startswith("Gives:") for line in rest), "what it gives"
    assert rule.source, "where the reason is written"
    assert rule.examples, "an example that is a test"


def test_rules_come_in_the_order_of_their_phases() -> None:
    phases = [rule.phase for rule in RULES]
    assert phases == sorted(phases)
