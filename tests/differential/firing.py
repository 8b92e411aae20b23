"""How often each rule and each pass fired, over the examples, the rules' and passes' own kernels and random programs.

    python -m tests.differential.firing --count 200 --seed 7

A table, and exit status 1 if a rule or a pass fired in no random kernel. Python alone: nothing is compiled.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from random import Random

from hypothesis import HealthCheck, given, seed, settings

from tests.conformance.kernels_of_passes import KERNELS
from tests.conformance.test_effects import EXAMPLES
from tests.conformance.test_passes import TARGETS, of_pass
from tests.conformance.test_passes import _program as example_program
from tests.conformance.test_reference import example
from tests.differential.examples import mutated
from tests.differential.forms import FORMS, random_form
from tests.differential.loops import random_loop
from tests.differential.programs import RandomProgram, random_programs
from tests.differential.test_loops import program_of
from tests.unit.rules.kernels import resolved
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Launch, Program
from tile2cu.frontend import programs
from tile2cu.passes import PASSES
from tile2cu.rules import RULES, resolve
from tile2cu.targets import find

Fired = Counter[str]


def firing(program: Program, target: str) -> Fired:
    """The rules and passes of a program's launches: one each, however many facts they state."""
    found: set[str] = set()

    def watch(name: str, _: Launch, __: Launch) -> None:
        found.add(name)

    for launch in program.launches:
        with suppress(Tile2CuError):
            found |= {fact.rule for fact in resolve(program, launch, find(target), RULES, watch).facts}
    return Counter(found)


def of_examples() -> Iterator[Fired]:
    for name in EXAMPLES:
        for target in TARGETS:
            yield firing(example(name), target)


def of_own_kernels() -> Iterator[Fired]:
    """The rules' examples and the passes' kernels."""
    for name in KERNELS:
        program, _, target = of_pass(name)
        yield firing(program, target)
    for rule in RULES:
        for each in rule.examples:
            program = example_program(each.statements, each.threads) if each.cluster == 1 else None
            if program is not None:
                yield firing(program, each.target)
            context = resolved(each.statements, target=each.target, threads=each.threads, cluster=each.cluster)
            yield Counter({fact.rule for fact in context.facts})


def of_mutants(count: int, random: Random) -> Iterator[Fired]:
    for each in islice(mutated(random), count):
        program = each.program
        if program is not None:
            yield firing(program, each.target)


def of_random_loops(count: int, first: int) -> Iterator[Fired]:
    for number in range(first, first + count):
        target = ("cuda:sm_90a", "cuda:sm_80", "hip:gfx942")[number % 3]
        yield firing(program_of(random_loop(number), target), target)


def of_random_forms(count: int, first: int) -> Iterator[Fired]:
    for name in FORMS:
        for number in range(first, first + count):
            form = random_form(name, number)
            with suppress(Tile2CuError):  # a condition may be known at transpile time to hold for ever
                (program,) = programs(None, form.text, target=find(form.target))
                yield firing(program, form.target)


def of_random_programs(count: int, first: int) -> Iterator[Fired]:
    found: list[Fired] = []

    @seed(first)
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(random_programs())
    def run(random: RandomProgram) -> None:
        (program,) = programs(None, random.text, target=find(random.target))
        found.append(firing(program, random.target))

    run()
    yield from found


def report(count: int, first: int) -> tuple[str, list[str]]:
    """The table, and the rules and passes that no random kernel reached."""
    sources = {
        "examples": of_examples(),
        "own kernels": of_own_kernels(),
        "mutants": of_mutants(count, Random(first)),
        "random loops": of_random_loops(count // 2, first),
        "random forms": of_random_forms(count // 2, first),
        "random programs": of_random_programs(count, first),
    }
    columns: dict[str, Fired] = {name: sum(found, Counter()) for name, found in sources.items()}
    names = [*(rule.id for rule in RULES), *PASSES]
    rows = [["rule or pass", *columns], *([name, *(str(found[name]) for found in columns.values())] for name in names)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    table = "\n".join(map("  ".join, lines))
    random = [found for name, found in columns.items() if name.startswith("random")]
    return table, [name for name in names if not any(found[name] for found in random)]


def main() -> int:
    parser = argparse.ArgumentParser(description=next(islice((__doc__ or "").splitlines(), 1)))
    parser.add_argument(
        "--count", type=int, default=200, help="mutants and random programs; half as many loops, an eighth of each form"
    )
    parser.add_argument("--seed", type=int, default=0, help="which of them")
    options = parser.parse_args()
    table, silent = report(options.count, options.seed)
    print(table)
    if silent:
        print(f"fired in no random kernel: {', '.join(silent)}", file=sys.stderr)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
