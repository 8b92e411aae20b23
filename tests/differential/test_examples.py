"""The rules' own examples, mutated or with the rule switched off: refused, or the engine equals the interpreter.

`--programs N` runs one in twenty of N of each; `--programs-seed S` others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tests.differential.examples import Kernel, examples, mutated, with_results
from tile2cu import api
from tile2cu.core.errors import Tile2CuError
from tile2cu.rules import RULES
from tile2cu.targets import find

PARTS = 2

# Rules that make a kernel correct: barriers, fences, waits, predicates, and the rejection of what is unsupported.
FOR_CORRECTNESS = {
    "sync": "accesses of threads are unordered without it",
    "guard": "accesses leave their tensor, or share a byte, without it",
    "pipeline.gemm.awaited": "an MMA is read while it is outstanding without it",
    "available": "what the target lacks is rejected by it",
    "warps.block.threads": "a wrong number of threads is rejected by it",
    "select.copy.explicit-tma": "the user's own TMA copy is one by it",
    "select.extern.ptx": "PTX on another target is rejected by it",
    "select.atomic.tile": "an atomic of a tile is one by it",
    "layout.index.constant": "a number indexes a fragment only if all threads hold its elements",
    "layout.shared.addressed": "the user's addresses in a tile are right by it",
}
# Without these a decision is missing that emission needs: the kernel is not emitted (a KeyError, or a diagnostic).
NEEDED = {
    "warps.gemm.warpgroups", "warps.gemm.square", "warps.gemm.full-row", "warps.gemm.full-col", "select.gemm.wgmma",
    "select.gemm.mfma", "select.gemm.mma-sync", "select.gemm.fma", "layout.view.split-columns",
    "layout.parallel.to-fragment", "layout.shared.plain", "layout.loop.flat", "vector.loop.vectors",
    "guard.tensor.out-of-bounds", "vector.tensor.alignment", "launch.explicit.registers", "select.reduce.workspace",
    "storage.shared.aliasing", "select.copy.through-shared", "select.copy.synchronous", "select.loop.elected-writers",
    "storage.shared.budget", "layout.free.flat",
}  # fmt: skip


def is_for_correctness(rule: str) -> bool:
    return any(rule.startswith(name) or rule.endswith(f".{name}") for name in FOR_CORRECTNESS)


def part_of(request: pytest.FixtureRequest, part: int) -> tuple[int, Random]:
    """How many kernels a part runs, and which."""
    count = max(request.config.getoption("--programs") // (20 * PARTS), 1)
    return count, Random(PARTS * request.config.getoption("--programs-seed") + part)


@pytest.mark.parametrize("part", range(PARTS))
def test_mutants_of_rules_examples(part: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    count, random = part_of(request, part)
    outcomes: Counter[str] = Counter()
    for number, each in enumerate(islice(mutated(random), 20 * count)):
        if outcomes["right"] == count:
            break
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes[with_results(each, random).checked(folder)] += 1
    assert outcomes["right"] == count, outcomes


@pytest.mark.parametrize("part", range(PARTS))
def test_results_without_an_optional_rule(
    part: int, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, random = part_of(request, part)
    optional = [each for each in examples() if each.rule not in NEEDED and not is_for_correctness(each.rule)]
    assert len(optional) > 30
    outcomes: Counter[str] = Counter()
    for number, example in enumerate(islice(random.sample(optional, len(optional)), count)):
        kernel = with_results(example, random)
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(api, "RULES", tuple(rule for rule in RULES if rule.id != example.rule))
        try:
            outcomes[kernel.checked(folder)] += 1
        except (KeyError, AssertionError) as error:
            raise AssertionError(f"without {example.rule}: {error}\n{kernel.statements}") from error
    print(outcomes)


@pytest.mark.nightly
def test_each_rule_is_optional_or_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rules of NEEDED, and without no others, no source of their examples is emitted."""
    missing = set()
    rendering = import_module("tile2cu.emitter.render")  # the package has a function of that name
    monkeypatch.setattr(rendering, "formatted", lambda texts: texts)  # nobody reads them
    for kernel in examples():
        if kernel.program is None:
            continue
        monkeypatch.setattr(api, "RULES", tuple(rule for rule in RULES if rule.id != kernel.rule))
        is_emitted_without = _is_emitted(kernel)
        monkeypatch.setattr(api, "RULES", RULES)
        if not is_emitted_without and _is_emitted(kernel):
            missing.add(kernel.rule)
    assert missing <= NEEDED, f"emission needs these, too: {sorted(missing - NEEDED)}"
    known = {rule.id for rule in RULES}
    assert known >= NEEDED and all(any(map(_named(name), known)) for name in FOR_CORRECTNESS)


def _named(name: str) -> Callable[[str], bool]:
    return lambda rule: rule.startswith(name) or rule.endswith(f".{name}")


def _is_emitted(kernel: Kernel) -> bool:
    program = kernel.program
    assert program is not None
    try:
        api.emit_program(program, find(kernel.target))
    except (Tile2CuError, KeyError):
        return False
    return True
