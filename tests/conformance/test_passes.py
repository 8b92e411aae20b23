"""Translation validation: after every pass that changed a program, the interpreter gives what it gave before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from msgspec.structs import replace

from tests.conformance.comparison import tolerance
from tests.conformance.kernels import small_program
from tests.conformance.kernels_of_passes import KERNELS as KERNELS_OF_PASSES
from tests.conformance.kernels_of_passes import PARAMS
from tests.conformance.reference import CannotInterpret, KernelFault, interpret, numpy_dtype
from tests.conformance.test_effects import EXAMPLES
from tests.conformance.test_reference import example
from tests.differential.programs import RandomProgram, random_programs
from tests.differential.test_programs import arguments
from tests.host.dependence.test_dependence import KERNELS, problem
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import int_const, static_value, substitute
from tile2cu.core.program import Buffer, Launch, Program
from tile2cu.frontend import programs
from tile2cu.passes import PASSES, Watch
from tile2cu.rules import RULES, resolve
from tile2cu.rules.engine import Example
from tile2cu.targets import find

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
# Passes of which the interpreter cannot run the launch before or after: it knows no groups of threads as passes write
# them. This may only get shorter.
NOT_VALIDATED = frozenset(("thread-branches", "group-fragments"))
SILENT: frozenset[str] = frozenset()  # passes that nothing here makes do anything; this may only get shorter


Result = dict[str, np.ndarray]


@dataclass
class Validation:
    """Which passes changed something, and of which the interpreter could not run the launch before or after."""

    fired: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def program(self, program: Program, given: Mapping[str, object], target: str) -> None:
        """Runs a program before and after each pass for a target. Raises AssertionError with the pass's name."""
        for number, launch in enumerate(program.launches):
            changes: list[tuple[str, Launch, Launch]] = []
            with suppress(Tile2CuError):
                resolve(program, launch, find(target), RULES, _watching(changes))
            last: tuple[Launch, Result] | None = None  # a pass's launch is what the next one starts with
            for name, before, after in changes:
                self.fired[name] += 1
                known = last[1] if last is not None and last[0] == before else None
                result = self.compare(name, program, number, before, after, given, known)
                last = None if result is None else (after, result)

    def compare(
        self,
        name: str,
        program: Program,
        number: int,
        before: Launch,
        after: Launch,
        given: Mapping[str, object],
        expected: Result | None = None,
    ) -> Result | None:
        """The result after a pass, None where there is none to compare; `expected` is the one before, if known."""
        old, new = (_with_launch(program, number, each) for each in (before, after))
        try:
            expected = expected or interpret(old, given)
        except CannotInterpret:
            self.unknown[name] += 1
            return None
        except (KernelFault, TimeoutError):
            return None  # the program itself is wrong, or too long: there is nothing to compare with
        try:
            found = interpret(new, given)
        except CannotInterpret:
            self.unknown[name] += 1
            return None
        limits = tolerance(old, given)
        for param in program.params:
            if isinstance(param, Buffer):
                fault = limits.faults(found[param.name], expected[param.name], param.dtype)
                assert not fault, f"pass {name} changes {param.name}: {fault}"
        return found


def _watching(changes: list[tuple[str, Launch, Launch]]) -> Watch:
    return lambda name, before, after: changes.append((name, before, after))


def _with_launch(program: Program, number: int, launch: Launch) -> Program:
    return replace(program, launches=(*program.launches[:number], launch, *program.launches[number + 1 :]))


def of_pass(name: str) -> tuple[Program, dict[str, object], str]:
    """A pass's own kernel, arguments for it, and its target; what it should write is poisoned."""
    target, threads, statements = KERNELS_OF_PASSES[name]
    rng = np.random.default_rng(3)
    given: dict[str, object] = {
        "X": rng.integers(-2, 3, (256, 64)).astype(np.float32),
        "H": rng.integers(-2, 3, (256, 64)).astype(np.float16),
        "rows": rng.integers(0, 256, 256).astype(np.int32),
        "Y": np.full((256, 64), np.nan, np.float32),
    }
    return small_program(statements, PARAMS, threads=threads), given, target


@pytest.mark.parametrize("name", KERNELS_OF_PASSES)
def test_a_passs_own_kernel(name: str) -> None:
    validation = Validation()
    validation.program(*of_pass(name))
    assert validation.fired[name] and set(validation.unknown) <= NOT_VALIDATED, validation


def test_every_pass_fires_somewhere() -> None:
    """In the passes' own kernels or the rules' examples."""
    changes: list[tuple[str, Launch, Launch]] = []

    def fires(program: Program, target: str) -> None:
        for launch in program.launches:
            with suppress(Tile2CuError):
                resolve(program, launch, find(target), RULES, _watching(changes))

    for name in KERNELS_OF_PASSES:
        program, _, target = of_pass(name)
        fires(program, target)
    for _, each in rule_examples():
        example_program = _program(each.statements, each.threads)
        if example_program is not None:
            fires(example_program, each.target)
    silent = set(PASSES) - {name for name, _, _ in changes}
    assert silent <= SILENT, f"nothing here makes these passes do anything: {sorted(silent - SILENT)}"
    assert silent == SILENT, f"take these off the list: {sorted(SILENT - silent)}"


@pytest.mark.sweep(cases=23)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_with_dependences(path: Path, target: str) -> None:
    program, given = problem(path, target)
    Validation().program(program, given, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, target: str) -> None:
    program, sizes = example(name), EXAMPLES[name]
    assert {size.name for size in program.sizes} <= set(sizes)
    known = {size: int_const(sizes[size.name]) for size in program.sizes}
    rng = np.random.default_rng(0)
    given: dict[str, object] = {
        param.name: rng.integers(
            -2, 3, [int(static_value(substitute(extent, known)) or 0) for extent in param.shape]
        ).astype(numpy_dtype(param.dtype))
        for param in program.params
        if isinstance(param, Buffer)
    }
    Validation().program(program, given | dict(sizes), target)


# ---- the rules' own examples, and their mutations --------------------------------------------------------------------

_HEAD = """\
import tilelang.language as T

m, n = T.dynamic("m, n")

@T.prim_func
def example(
    A: T.Tensor((1000, 64), "float32"), X: T.Tensor((520, 520), "float32"), Y: T.Tensor((m, n), "float16"),
    Z: T.Tensor((520, 520), "float16"),
):
    with T.Kernel(1, threads={threads}) as bx:
"""


def rule_examples() -> Iterator[tuple[str, Example]]:
    seen: set[tuple[str, str]] = set()
    for rule in RULES:
        for each in rule.examples:
            if each.cluster == 1 and (each.statements, each.target) not in seen:
                seen.add((each.statements, each.target))
                yield rule.id, each


def mutations(statements: str) -> Iterator[tuple[str, str]]:
    """(name, statements): the same, and what a pass that looks at too little would get wrong."""
    yield "as it is", statements
    bumped = statements.replace("Z[0, 0]", "Z[moved, 0]").replace("X[0, 0]", "X[moved, 0]")
    if bumped != statements:
        first = next(at for at, line in enumerate(bumped.splitlines()) if "moved" in line)
        lines = bumped.splitlines()
        space = " " * (len(lines[first]) - len(lines[first].lstrip()))
        lines[first] += f"\n{space}moved = moved + 1"
        yield "an index changes afterwards", 'moved = T.alloc_var("int32", 0)\n' + "\n".join(lines)
    if "clear_accum=True" in statements:
        yield "a conditional clear", statements.replace("clear_accum=True", "clear_accum=m > 1")
    if "for k in T." in statements:
        lines = statements.rstrip().splitlines()
        head = next(at for at, line in enumerate(lines) if "for k in T." in line)
        inside = " " * (len(lines[head]) - len(lines[head].lstrip()) + 4)
        yield (
            "an iteration is skipped",
            "\n".join([*lines[: head + 1], f"{inside}if k == 1:", f"{inside}    continue", *lines[head + 1 :]]),
        )
    yield "under a branch", "if bx % 2 == 0:\n" + indent(statements.strip("\n"), "    ")


def _program(statements: str, threads: int) -> Program | None:
    text = _HEAD.format(threads=threads) + indent(statements.strip("\n"), " " * 8) + "\n"
    try:
        (program,) = programs(None, text, kernel=None, bindings={})
    except Tile2CuError:
        return None
    return program


PARTS = 3


@pytest.mark.sweep(every=PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_examples_of_rules_and_their_mutations(part: int) -> None:
    rng = np.random.default_rng(0)
    validation, ran = Validation(), 0
    given: dict[str, object] = {
        "A": rng.integers(0, 3, (1000, 64)).astype(np.float32),
        "X": rng.integers(0, 3, (520, 520)).astype(np.float32),
        "Y": rng.integers(-2, 3, (64, 64)).astype(np.float16),
        "Z": rng.integers(-2, 3, (520, 520)).astype(np.float16),
    }
    mutated = ((rule, each, *mutation) for rule, each in rule_examples() for mutation in mutations(each.statements))
    for rule, each, name, statements in islice(mutated, part, None, PARTS):
        program = _program(statements, each.threads)
        if program is not None:
            ran += 1
            try:
                validation.program(program, given, each.target)
            except AssertionError as error:
                raise AssertionError(f"{rule}, {name}: {error}\n{statements}") from error
    assert ran > 200 // PARTS and set(validation.unknown) <= NOT_VALIDATED, validation.unknown
    print(validation.fired)


@pytest.mark.nightly
@seed(0)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=random_programs())
def test_random_programs(random: RandomProgram) -> None:
    (program,) = programs(None, random.text, target=find(random.target))
    Validation().program(program, arguments(program, random), random.target)


def test_a_pass_that_changes_the_result_is_named() -> None:
    program, given = problem(KERNELS[0], "cuda:sm_80")
    (launch,) = program.launches
    with pytest.raises(AssertionError, match="pass loses-a-statement changes"):
        Validation().compare("loses-a-statement", program, 0, launch, replace(launch, body=launch.body[:-1]), given)


def test_all_passes_have_names_of_their_own() -> None:
    assert len(set(PASSES)) == len(PASSES)
