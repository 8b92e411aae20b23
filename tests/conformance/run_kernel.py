"""Runs one kernel of a file on the CPU engine with all checks, and compares it with the reference interpreter.

    python tests/conformance/run_kernel.py FILE KERNEL [--target cuda:sm_80] [--device ptx]

Prints one line of JSON: a status of run_corpus.RANKS, and details. A separate process, so that a kernel that hangs or
crashes affects nothing else.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "transpile"), str(ROOT / "runtime"), str(ROOT)]

import numpy as np  # noqa: E402

from tests.conformance import arguments as making  # noqa: E402
from tests.conformance.comparison import tolerance  # noqa: E402
from tests.conformance.drivers import with_arguments  # noqa: E402
from tests.conformance.reference import CannotInterpret, KernelFault, from_memory, in_memory, interpret  # noqa: E402
from tile2cu.api import emit_program  # noqa: E402
from tile2cu.core.errors import Tile2CuError  # noqa: E402
from tile2cu.core.origin import EmitOptions  # noqa: E402
from tile2cu.core.program import Program  # noqa: E402
from tile2cu.emitter import Emitted  # noqa: E402
from tile2cu.frontend import programs  # noqa: E402
from tile2cu.targets import Target, find  # noqa: E402
from tile2cu_runtime import CheckError, CompileError, Kernel, LaunchError, Tile2CuRuntimeError, load_kernel  # noqa: E402

UNRUN = "no arguments found"  # begins the message of such an Outcome
_ASM = re.compile(r"\basm\b")
# A run of the interpreter, and the whole search for arguments with which a kernel has a meaning, in seconds.
RUN_SECONDS, SEARCH_SECONDS = 15.0, 60.0
# A run of a program of which there are smaller ones: the engine, which checks each access, takes a hundred times that.
QUICK_SECONDS = 4.0


@dataclass(frozen=True)
class Outcome:
    """`status` is one of run_corpus.RANKS from `miscompiled` on; `choice` identifies the arguments."""

    status: str
    message: str = ""
    choice: str = ""


def run_kernel(
    path: Path, name: str, target: Target, run: Callable[..., Outcome] | None = None, style: str = "tl"
) -> Outcome:
    """The worst outcome of the kernels of that name, as `run` (run_program) has it: a factory may make several."""
    run, options = run or run_program, EmitOptions(style=style)
    text = path.read_text(encoding="utf-8")
    given, found = with_arguments(
        path, text, name, lambda given: (given, _emitted(_programs(path, text, name, target, given), target, options))
    )
    ranks = ("miscompiled", "compiled", "ran", "correct")
    outcomes = []
    for place, (program, emitted) in enumerate(found):
        sizes = [_with_sizes(program, text, largest) for largest in making.LARGEST]
        others = [each for each in sizes if each[0] or each[1] != text]
        outcome = run(program, emitted, seconds=QUICK_SECONDS if others else RUN_SECONDS)
        for smaller, shorter in others:  # than the driver's sizes, where those take too long to run
            if outcome.message.startswith(UNRUN):
                try:
                    other = _programs(path, shorter, name, target, given | smaller)[place]
                    outcome = run(other, emit_program(other, target, options=options), seconds=QUICK_SECONDS)
                except (Tile2CuError, IndexError):
                    continue
        outcomes.append(outcome)
    return min(outcomes, key=lambda outcome: ranks.index(outcome.status))


def _with_sizes(program: Program, text: str, largest: int) -> tuple[dict[str, int], str]:
    """Arguments of the factory, and a variant of the file's source, with which a program has no larger sizes."""
    return making.smaller(program, largest), making.with_smaller_numbers(program, text, largest)


def _emitted(found: tuple[Program, ...], target: Target, options: EmitOptions) -> list[tuple[Program, Emitted]]:
    return [(program, emit_program(program, target, options=options)) for program in found]


def _programs(path: Path, text: str, name: str, target: Target, bindings: Mapping[str, object]) -> tuple[Program, ...]:
    return programs(
        path,
        text,
        kernel=name,
        bindings=bindings,
        target=target,
    )


def run_program(
    program: Program, emitted: Emitted, *, seconds: float = RUN_SECONDS, device: Literal["cpu", "ptx"] = "cpu"
) -> Outcome:
    """Builds a program's source, finds arguments for it, runs both sides and compares them.

    `device`: the source on the CPU engine, or its PTX by nvcc on the PTX machine, which also runs inline PTX.
    """
    with tempfile.TemporaryDirectory() as folder:
        for file, content in emitted.files.items():
            (Path(folder) / file).write_text(content, encoding="utf-8")
        (text,) = Path(folder).glob("*.cu")
        try:
            if device == "ptx" or any(_ASM.search(written.text) for written in program.user_code):  # g++ knows no PTX
                kernel = load_kernel(text, device="ptx", check=True)
            else:
                kernel = load_kernel(text, device="cpu", check=True, schedules=("round-robin", "shuffle"))
        except CompileError as error:
            return Outcome("miscompiled", str(error)[:300])
        except Tile2CuRuntimeError as error:  # PTX of a target that is not simulated
            return Outcome("compiled", str(error)[:300])
        return _search(program, kernel, seconds)


def _search(program: Program, kernel: Kernel, seconds: float) -> Outcome:
    """Tries arguments until the interpreter can evaluate the kernel with them, and the engine accepts them.

    Arguments with which results depend on unwritten values are the last resort.
    """
    deadline, why = time.process_time() + SEARCH_SECONDS, ""
    doubtful: list[tuple[dict[str, object], dict[str, np.ndarray], str]] = []
    choices = collections.deque(making.choices(program))
    while choices and time.process_time() < deadline:
        choice = choices.popleft()
        try:
            arguments, expected = _meaning(program, choice, seconds)
        except _Meaningless as error:
            why = why or str(error)
            continue
        except CannotInterpret as error:
            return Outcome("compiled", f"cannot interpret {error}", str(choice))
        if any(np.isnan(exact.astype(np.float64)).any() for exact in expected.values()):
            doubtful += [] if doubtful else [(arguments, expected, str(choice))]
            continue
        outcome = _compare(program, kernel, arguments, expected, str(choice))
        if outcome is not None and outcome.status == "ran" and hangs_on_rounding(program, arguments, choice):
            why = why or "the results hang on rounding"
            if not choice.fractions:
                choices.appendleft(replace(choice, fractions=True))
        elif outcome is not None:
            return outcome
        else:
            why = why or "the launcher refuses the sizes"
    last = _compare(program, kernel, *doubtful[0]) if doubtful else None
    return last or Outcome("compiled", f"{UNRUN}: {why}")


class _Meaningless(Exception):
    """With these arguments the kernel computes nothing, or what it must not."""


def _meaning(
    program: Program, choice: making.Choice, seconds: float
) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """Arguments, and what the tensors hold afterwards. Errors: _Meaningless, CannotInterpret."""
    try:
        arguments = making.make(program, choice)
        expected = interpret(program, arguments, seconds=seconds)
    except (KernelFault, TimeoutError, making.TooLarge) as error:
        raise _Meaningless(f"{type(error).__name__}: {error}") from None
    if all(_same(exact, arguments[name]) for name, exact in expected.items()):
        raise _Meaningless("nothing is written")
    return arguments, expected


def hangs_on_rounding(program: Program, arguments: dict[str, object], choice: making.Choice) -> bool:
    """Whether the interpreter's results change by more than the tolerance if its inputs change by a roundoff.

    For example a diverging iteration: no two ways to compute it agree, and a comparison is meaningless.
    """
    limits, types = tolerance(program, arguments), {param.name: param.dtype for param in program.params}
    exact = interpret(program, arguments, seconds=RUN_SECONDS)
    moved = interpret(program, making.nudged(program, arguments, choice), seconds=RUN_SECONDS)
    return any(limits.faults(moved[name], exact[name], types[name]) for name in exact)


def _compare(
    program: Program, kernel: Kernel, arguments: dict[str, object], expected: dict[str, np.ndarray], choice: str
) -> Outcome | None:
    """The outcome of a run, or None if the launcher rejects the sizes."""
    types = {param.name: param.dtype for param in program.params}
    actual = {
        name: making.with_strides(program, arguments, name, in_memory(value, types[name]))
        if isinstance(value, np.ndarray)
        else value
        for name, value in arguments.items()
    }
    try:
        kernel(**actual)
    except CheckError as error:
        return Outcome("compiled", str(error.report.findings[0])[:600], choice)
    except LaunchError as error:
        return None if error.name == "TL_NOT_SUPPORTED" else Outcome("compiled", str(error)[:300], choice)
    except Tile2CuRuntimeError as error:
        return Outcome("compiled", str(error)[:300], choice)
    limits = tolerance(program, arguments)
    for name, exact in expected.items():
        fault = limits.faults(from_memory(np.asarray(actual[name]), types[name]), exact, types[name])
        if fault:
            return Outcome("ran", f"{name}: {fault}", choice)
    return Outcome("correct", "", choice)


def _same(a: np.ndarray, b: object) -> bool:
    return a.tobytes() == np.asarray(b).tobytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("kernel")
    parser.add_argument("--target", default="cuda:sm_80")
    parser.add_argument(
        "--device", choices=("cpu", "ptx"), default="cpu", help="ptx: nvcc's PTX of the text, simulated"
    )
    options = parser.parse_args()
    run = functools.partial(run_program, device=options.device)
    print(json.dumps(asdict(run_kernel(options.file, options.kernel, find(options.target), run))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
