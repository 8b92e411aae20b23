"""The rules' own examples as whole kernels, their mutants, and runs of them on the CPU engine and the interpreter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from textwrap import dedent

import numpy as np

from tests.conformance.comparison import tolerance
from tests.conformance.kernels import small_program
from tests.conformance.reference import CannotInterpret, KernelFault, interpret
from tests.conformance.test_passes import rule_examples
from tests.host.dependence.mutations import PARAMS, mutants
from tests.host.dependence.test_mutations import EXAMPLE_PARAMS, given_to_examples
from tile2cu.api import emit_program
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, Program
from tile2cu.targets import find
from tile2cu_runtime import CheckError, LaunchError, load_kernel

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
_ROWS = 256  # of each tile's results in Out
_OUT = f'Out: T.Tensor(({16 * _ROWS}, 256), "float32")'
_ALLOCATION = re.compile(r"""(\w+) = T\.alloc_(shared|fragment)\((\(.*?\)), ['"](\w+)['"]\)""")
# The order of asynchronous operations is the user's, and so are their races; PTX does not run on a CPU.
_EXPLICIT = re.compile(r"barrier|tma_copy|T\.ws|async|cluster|wgmma|set_max_nreg|asm|thread_binding|get_warp")


@dataclass(frozen=True)
class Kernel:
    """Statements of a rule's example, or of a mutant, with the rule's id."""

    rule: str
    statements: str
    threads: int
    target: str

    @property
    def program(self) -> Program | None:
        """None where they make no kernel."""
        try:
            return small_program(self.statements, f"{EXAMPLE_PARAMS}, {PARAMS}, {_OUT}", threads=self.threads)
        except Tile2CuError:
            return None

    def checked(self, folder: Path) -> str:
        """ "right", or why there is nothing to compare. Raises AssertionError where a result is wrong."""
        program = self.program
        if program is None:
            return "no kernel"
        try:
            emitted = emit_program(program, find(self.target))
        except Tile2CuError as error:
            return error.code
        given = given_to_examples() | {"Out": np.zeros((16 * _ROWS, 256), np.float32)}
        try:
            expected = interpret(program, given, seconds=20)
        except (CannotInterpret, KernelFault, TimeoutError) as error:
            return type(error).__name__
        if any(np.isnan(value.astype(np.float64)).any() for value in expected.values()):
            return "reads what nothing wrote"
        return self._compared(program, emitted.files, given, expected, folder)

    def _compared(
        self,
        program: Program,
        files: dict[str, str],
        given: dict[str, object],
        expected: dict[str, np.ndarray],
        folder: Path,
    ) -> str:
        actual = {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
        (source,) = (each for each in folder.iterdir() if each.suffix in (".cu", ".hip"))
        try:
            load_kernel(source, device="cpu", check=True, schedules=("round-robin", "shuffle"))(
                **{param.name: actual[param.name] for param in program.params}
            )
        except LaunchError as error:
            assert error.name == "TL_NOT_SUPPORTED"
            return error.name
        except CheckError as error:
            assert "error[uninitialised" in str(error), f"{error}\n{self.statements}"
            return "reads what nothing wrote"
        limits = tolerance(program, given, wgmma=True)
        for param in program.params:
            if isinstance(param, Buffer):
                fault = limits.faults(np.asarray(actual[param.name]), expected[param.name], param.dtype)
                assert not fault, f"{param.name}: {fault}\n{self.statements}"
        return "right"


def examples() -> Iterator[Kernel]:
    """The examples for targets that the engine runs, without those whose order is the user's."""
    for rule, each in rule_examples():
        if not _EXPLICIT.search(each.statements) and each.target in TARGETS:
            yield Kernel(rule, dedent(each.statements).strip("\n"), each.threads, each.target)


def mutated(random: Random) -> Iterator[Kernel]:
    """Examples, or a mutant of each, without end: to write all 5000 mutants takes longer than to run a few."""
    all_examples = list(examples())
    while True:
        each = random.choice(all_examples)
        statements = random.choice([each.statements, *mutants(each.statements)])
        yield Kernel(each.rule, statements, each.threads, each.target)


def with_results(kernel: Kernel, random: Random) -> Kernel:
    """The kernel with its tiles cleared, or its fragments, or none, before; and some of them stored behind it.

    What it computes shows, and what it leaves in tiles.
    """
    lines = kernel.statements.splitlines()
    found = [(at, match) for at, line in enumerate(lines) if (match := _ALLOCATION.match(line))]
    cleared = random.choice((("shared", "fragment"), ("fragment",), ()))
    stored = random.choice((1.0, 0.6, 0.4))
    behind = []
    for number, (_, match) in enumerate(found):
        shape = ast.literal_eval(match[3])
        if len(shape) <= 2 and max(shape) <= _ROWS and number < 16 and random.random() < stored:
            to = f"{number * _ROWS}, 0" if len(shape) == 2 else f"{number * _ROWS}, 0:{shape[0]}"
            behind.append(f"T.copy({match[1]}, Out[{to}])")
    first = max((at for at, _ in found), default=-1) + 1
    lines[first:first] = [f"T.clear({match[1]})" for _, match in found if match[2] in cleared]
    return Kernel(kernel.rule, "\n".join([*lines, *behind]), kernel.threads, kernel.target)
