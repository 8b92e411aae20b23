"""A pass no longer fires on a mutant of its own kernel, or the interpreter gives the same before and after it."""

from itertools import islice

import numpy as np
import pytest

from tests.conformance.kernels import small_program
from tests.conformance.kernels_of_passes import KERNELS, PARAMS
from tests.conformance.test_passes import NOT_VALIDATED, Validation, of_pass, rule_examples
from tests.host.dependence import mutations
from tests.host.dependence.mutations import SCALARS, lazy_mutants, mutants
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Program


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in NOT_VALIDATED])
def test_a_pass_keeps_the_meaning_of_mutants(name: str, request: pytest.FixtureRequest) -> None:
    """One in ten, but several of each, or all with `--mutants 1`."""
    _, given, target = of_pass(name)
    _, threads, statements = KERNELS[name]
    every = list(lazy_mutants(statements))
    share = min(max(request.config.getoption("--mutants") * 10 // 16, 1), max(len(every) // 6, 1))
    validation, ran = Validation(), 0
    for written in every[::share]:
        mutant = written()
        program = _program(mutant, threads)
        if program is not None:
            ran += 1
            try:
                validation.program(program, given | SCALARS, target)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{mutant}") from error
    # The interpreter has no T.Parallel for some of the threads, which a mutant may add in divergent code.
    assert ran > 2 and validation.fired[name] > 3 * validation.unknown.total(), validation


def test_passes_keep_the_meaning_of_mutants_of_rules_examples(request: pytest.FixtureRequest) -> None:
    """One mutant in 192, or all with `--mutants 1`, which take some minutes."""
    validation = Validation()
    share = request.config.getoption("--mutants")
    every = ((each, mutant) for _, each in rule_examples() for mutant in lazy_mutants(each.statements))
    for each, written in islice(every, 0, None, share if share == 1 else 12 * share):
        mutant = written()
        program = _program(mutant, each.threads, EXAMPLE_PARAMS)
        if program is not None:
            try:
                validation.program(program, given_to_examples(), each.target)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{mutant}") from error
    assert len(validation.fired) > 5 and set(validation.unknown) <= NOT_VALIDATED, validation


EXAMPLE_PARAMS = """A: T.Tensor((1000, 64), "float32"), X: T.Tensor((520, 520), "float32"),
    Y: T.Tensor((64, 64), "float16"), Z: T.Tensor((520, 520), "float16"), m: T.int32, n: T.int32"""


def given_to_examples() -> dict[str, object]:
    rng = np.random.default_rng(0)
    return SCALARS | {
        "A": rng.integers(0, 3, (1000, 64)).astype(np.float32),
        "X": rng.integers(0, 3, (520, 520)).astype(np.float32),
        "Y": rng.integers(-2, 3, (64, 64)).astype(np.float16),
        "Z": rng.integers(-2, 3, (520, 520)).astype(np.float16),
        "m": 64,
        "n": 64,
    }


def _program(statements: str, threads: int, params: str = PARAMS) -> Program | None:
    """The program of a mutant; None where the mutation makes no kernel."""
    try:
        return small_program(statements, f"{params}, {mutations.PARAMS}", threads=threads)
    except Tile2CuError:
        return None


def test_mutants_differ_from_the_kernel_in_one_place() -> None:
    kernel = """
    S = T.alloc_shared((8, 8), "float32")
    for k in T.serial(4):
        T.copy(X[k, 0], S)
    """
    found = list(mutants(kernel))
    assert len(found) == len(set(found)) == 21
    assert sum("T.Parallel" in mutant for mutant in found) == 4
    assert sum("break" in mutant for mutant in found) == sum("continue" in mutant for mutant in found) == 1
    assert sum("in T.serial(below)" in mutant or "in T.serial(nothing)" in mutant for mutant in found) == 2
    assert sum("unordered" in mutant for mutant in found) == 2


def test_mutants_have_other_values_where_a_rule_looks_for_its_own() -> None:
    kernel = """
    for k in T.serial(4):
        if k > m:
            X[k * 64] = T.if_then_else(k < m, (T.cast(S[k], "int32") - 1) * 2, 0)
    """
    found = "\n".join(mutants(kernel))
    assert "- 1 * one) * 2" in found
    assert "T.cast(k, 'float32') * 0.3 < T.cast(m, 'float32') * 0.3" in found
    assert "T.cast(T.cast(S[k], 'uint8'), 'int32')" in found
    assert "X[k // 2 * 64]" in found
    assert "v = v + 1\n    if v - 1 > m:" in found
