"""Random kernels of each form on the CPU engine with every check on, against the reference interpreter.

`--programs N` runs one in sixty of N of each form, one in ten where results are exact; `--programs-seed S` others.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.comparison import tolerance
from tests.conformance.reference import CannotInterpret, from_memory, interpret
from tests.differential.build import quick_load
from tests.differential.forms import EXACT, FORMS, RandomForm, random_form
from tile2cu.api import emit_program
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, Program
from tile2cu.emitter import Emitted
from tile2cu.frontend import programs
from tile2cu.targets import find
from tile2cu_runtime import Kernel, load_kernel
from tile2cu_runtime.spec import read_manifest


def program_of(form: RandomForm) -> Program:
    (program,) = programs(None, form.text, target=find(form.target))
    return program


def check(form: RandomForm, folder: Path) -> str:
    """ "right", "emitted" where there is nothing to compare, or a diagnostic's code. AssertionError: it is wrong."""
    try:
        program = program_of(form)
        emitted = emit_program(program, find(form.target))
    except Tile2CuError as error:
        return error.code
    if not form.runs:
        return "emitted"
    given = {name: np.copy(each) if isinstance(each, np.ndarray) else each for name, each in form.arguments.items()}
    kernel = _loaded(emitted, folder)
    kernel(**given)
    try:
        expected = interpret(program, _as_numbers(program, form.arguments))
    except CannotInterpret:
        return "emitted"
    limits = tolerance(program, form.arguments, wgmma=True)
    for param in program.params:
        if isinstance(param, Buffer) and (param.name.startswith("Y") or param.name in form.outputs):
            fault = limits.faults(np.asarray(given[param.name]), expected[param.name], param.dtype)
            assert not fault, f"{param.name} on {form.target}: {fault}\n{form.text}"
            same = np.array_equal(given[param.name], expected[param.name], equal_nan=True)
            assert same or not form.exact, f"{param.name} on {form.target} is inexact\n{form.text}"
    return "right"


def _as_numbers(program: Program, arguments: dict[str, object]) -> dict[str, object]:
    """The arguments with an element in each place, also of types of which memory has two in a byte."""
    types = {param.name: param.dtype for param in program.params if isinstance(param, Buffer)}
    return {
        name: from_memory(np.asarray(value), types[name]) if name in types else value
        for name, value in arguments.items()
    }


def _loaded(emitted: Emitted, folder: Path) -> Kernel:
    """The kernel on the CPU engine, by the runtime's own way where it needs a workspace."""
    schedules = ("round-robin", "shuffle")
    for name, content in emitted.files.items():
        (folder / name).write_text(content, encoding="utf-8")
    manifest = read_manifest(folder / "form.json")
    if not manifest.workspace:
        return quick_load(emitted, folder, schedules)
    return load_kernel(folder / manifest.text_file, device="cpu", check=True, schedules=schedules)


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", FORMS)
def test_random_kernels_of_a_form(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    count = max(request.config.getoption("--programs") // (10 if name in EXACT else 60), 1)
    start = 100_000 * request.config.getoption("--programs-seed")
    outcomes: Counter[str] = Counter()
    for seed in range(start, start + count):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcomes[check(random_form(name, seed), folder)] += 1
    assert outcomes["right"] + outcomes["emitted"] or count < 4, outcomes
