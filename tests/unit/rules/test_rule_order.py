"""Rules declare what they read and write, are held to it, and are ordered by it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import (
    ALIASING,
    BARRIER,
    CALL,
    LAYOUT,
    PIPELINE,
    SCHEDULE,
    SHARED_LAYOUT,
    STAGES,
    TMA_IF,
    WARPS,
)
from tile2cu.core.facts import Facts, Key, Subject, UndeclaredError
from tile2cu.core.program import Launch
from tile2cu.rules import RULES, Context, Phase, engine
from tile2cu.rules.rule_order import groups, repeats

# Rules that wait for one another, phase by phase, and iterate to a fixpoint together.
CYCLES = {
    Phase.COMMON: {
        (
            "layout.copy.same",
            "layout.reduce.kept-dimension",
            "layout.scan.same",
            "layout.view.split-columns",
            "layout.parallel.from-fragment",
            "layout.parallel.to-fragment",
        )
    },
    # Room for operands in registers and for second stages is what a persistent kernel leaves, which is one only where
    # an operand is in registers. A loop has one schedule: vectors are prefetched where there is no other.
    Phase.PIPELINE: {
        (
            "pipeline.gemm.register-operand",
            "schedule.grid.persistent",
            "pipeline.loop.mma-in-flight",
            "pipeline.loop.in-order",
        ),
    },
}
# Rules that read what they state themselves, and are asked until they state nothing new.
REPEATED = {
    "launch.hopper.producer-warp",
    "layout.loop.flat",
    "storage.shared.aliasing",
    "epilogue.copy.tma-store",
}
# Rules that read what a later phase decides as well: they do not see that.
EARLY = {
    ("vector.tensor.alignment", TMA_IF),  # of TMA stores: these ask for their rows by themselves
    ("pipeline.gemm.register-operand", ALIASING),  # both size shared memory before any of it is reused
    ("pipeline.loop.mma-in-flight", ALIASING),
    ("warps.gemm.warpgroups", SCHEDULE),  # of ping-pong warpgroups, the only schedule that GEMMs' layouts depend on
    ("layout.gemm.wgmma-accumulator", SCHEDULE),
}


@dataclass(frozen=True)
class _Rule:
    reads: tuple[Key[Any], ...] = ()
    writes: tuple[Key[Any], ...] = ()
    absent: tuple[Key[Any], ...] = ()


def test_what_a_rule_reads_is_decided_before() -> None:
    pipeline, stages, barrier = _Rule((STAGES,), (PIPELINE,)), _Rule((), (STAGES,)), _Rule((PIPELINE,), (BARRIER,))
    for table in ((pipeline, stages, barrier), (barrier, pipeline, stages)):
        assert groups(table) == ((stages,), (pipeline,), (barrier,))


def test_of_alternatives_the_first_of_the_table_has_priority() -> None:
    first, default = _Rule((), (CALL,)), _Rule((), (CALL,), absent=(CALL,))
    assert groups((first, default), prefer=(default, first).index) == ((first,), (default,))
    assert not repeats((default,))


def test_rules_that_wait_for_one_another_are_one_group() -> None:
    one, other, after = _Rule((WARPS,), (LAYOUT,)), _Rule((LAYOUT,), (WARPS,)), _Rule((LAYOUT,), ())
    assert groups((after, one, other)) == ((one, other), (after,))
    assert repeats((one, other)) and repeats((_Rule((LAYOUT,), (LAYOUT,)),)) and not repeats((after,))


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.FREE])
def test_each_cycle_of_rules_is_known(phase: Phase) -> None:
    found = groups([rule for rule in RULES if rule.phase is phase])
    assert {tuple(rule.id for rule in group) for group in found if len(group) > 1} == CYCLES.get(phase, set())


def test_each_rule_that_reads_what_it_states_is_known() -> None:
    found = [groups([rule for rule in RULES if rule.phase is phase]) for phase in Phase if phase is not Phase.FREE]
    assert {group[0].id for each in found for group in each if len(group) == 1 and repeats(group)} == REPEATED


def test_no_other_rule_reads_what_a_later_phase_writes() -> None:
    later = {
        (rule.id, key)
        for rule in RULES
        for key in (*rule.reads, *rule.absent)
        if key is not LAYOUT and any(rule.phase < other.phase and key in other.writes for other in RULES)
    }
    assert later == EARLY


def _with_rule(monkeypatch: pytest.MonkeyPatch, **declared: tuple[Key[Any], ...]) -> None:
    """Adds a rule that reads WARPS and writes CALL, about no statement but the launch."""

    def states(launch: Launch, context: Context) -> Iterator[tuple[Subject, Key[Any], Any]]:
        for op in context.statements:
            if context.facts.get(op, WARPS) is None:
                yield op, CALL, "copy"

    made = engine.rule("test.rule.undeclared", phase=Phase.STORAGE, on=Launch, source="", **declared)(states)  # type: ignore[arg-type]
    monkeypatch.setattr("tile2cu.api.RULES", (*RULES, made))


_COPY = "S = T.alloc_shared((64, 32), 'float32')\nT.copy(X[0, 0], S)"


def test_a_rule_that_keeps_to_its_declarations_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_rule(monkeypatch, reads=(WARPS,), writes=(CALL,))
    resolved(_COPY)


def test_an_undeclared_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_rule(monkeypatch, reads=(BARRIER,), writes=(CALL,))
    with pytest.raises(UndeclaredError, match="`test.rule.undeclared` does not declare that it reads `warps`"):
        resolved(_COPY)


def test_an_undeclared_write_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_rule(monkeypatch, reads=(WARPS,), writes=(BARRIER,))
    with pytest.raises(UndeclaredError, match="`test.rule.undeclared` does not declare that it writes `call`"):
        resolved(_COPY)


def test_what_a_rule_does_not_declare_it_cannot_get_in_any_way() -> None:
    context = resolved(_COPY)
    seen = context.facts.seen_by("rule", frozenset((WARPS,)))
    assert isinstance(seen, Facts)
    for read in (seen.get, seen.fact, seen.rule, lambda about, key: seen[about, key]):
        with pytest.raises(UndeclaredError):
            read(context.launch, CALL)


def test_facts_are_listed_in_the_order_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [(fact.what, fact.rule) for fact in resolved(_COPY).facts]
    monkeypatch.setattr(engine, "in_order", lambda rules: groups(rules, prefer=lambda rule: -RULES.index(rule)))
    assert [(fact.what, fact.rule) for fact in resolved(_COPY).facts] == before


def test_each_rule_writes_something() -> None:
    assert all(rule.writes for rule in RULES)
    assert all(not set(rule.absent) & set(rule.reads) for rule in RULES)


def test_a_tile_is_swizzled_for_a_loop_whose_layout_is_chosen_last() -> None:
    """The loop meets no fragment. When its layout was chosen after that of the tile, the two contradicted."""
    context = resolved(
        """
x = T.alloc_shared((512,), "float32")
P = T.alloc_shared((64, 512), "float32")
T.copy(X[0, 0:512], x)
for i, c in T.Parallel(64, 64):
    P[i, c * 8] = x[c * 8]
"""
    )
    fact = context.facts.fact(next(tile for tile in context.launch.tiles if tile.name == "x"), SHARED_LAYOUT)
    assert (fact.value.swizzle, fact.rule) == (128, "layout.shared.line-swizzle")
