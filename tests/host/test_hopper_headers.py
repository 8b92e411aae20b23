"""Texts for sm_90a on the CPU engine, every check on: TMA pipelines with a producer warp, wgmma, TMA stores."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # hopper_calls: pytest imports tests without their folder

from hopper_calls import CALLS, Call, gemm_call  # noqa: E402

from tests.built import built_for_engine  # noqa: E402
from tile2cu_runtime.engine import EngineOptions, load_engine  # noqa: E402

FOLDER = Path(__file__).parent / "hopper"
SCHEDULES: tuple[dict[str, Any], ...] = (
    {},
    {"schedule": "reverse", "landing": "early"},
    {"schedule": "shuffle", "landing": "random", "seed": 3},
    {"schedule": "shuffle", "landing": "random", "preempt": 0.005, "seed": 4},
)


@pytest.fixture(scope="session")
def text() -> Callable[[str], ctypes.CDLL]:
    """`text("attention")`: the functions of hopper/attention.cu, with the engine's hooks."""

    @functools.cache
    def build(name: str) -> ctypes.CDLL:
        load_engine()
        return ctypes.CDLL(str(built_for_engine(FOLDER / f"{name}.cu", check=True)))

    return build


def run(library: ctypes.CDLL, call: Call, **options: Any) -> list[dict[str, Any]]:
    """Runs the call in the engine's memory, checks what it wrote, and gives the findings."""
    engine, output = load_engine(), call.output.copy()
    with ExitStack() as stack:
        arrays = [(array, array.ctypes.data) for array in call.inputs]
        arrays.append((output, None if call.fresh else output.ctypes.data))
        pointers = [stack.enter_context(engine.memory(max(a.nbytes, 16), content)) for a, content in arrays]
        with engine.turn(EngineOptions(check=True, **options)):
            status = call.run(library, pointers)
            findings = list(engine.report()["findings"])
        assert status == 0, (call.name, status, findings)
        ctypes.memmove(output.ctypes.data, pointers[-1], output.nbytes)
    call.check(output)
    return findings


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_text_is_right_and_silent(text: Callable[[str], ctypes.CDLL], name: str, schedule: dict[str, Any]) -> None:
    library = text(name)
    for call in CALLS[name](library):
        assert run(library, call, **schedule) == [], call.name


@pytest.mark.parametrize(
    ("size", "offset", "status"),
    [
        ((0, 8, 8), 0, 0),
        ((8, 0, 8), 0, 0),
        ((-1, 8, 8), 0, 1),
        ((8, 8, 8), 2, 2),
        ((8, 12, 8), 0, 3),
        ((8, 8, 4), 0, 3),
    ],
)
def test_what_tma_cannot_do_is_a_status(
    text: Callable[[str], ctypes.CDLL], size: tuple[int, int, int], offset: int, status: int
) -> None:
    """Nothing to do is fine; negative, misaligned and unsupported sizes are refused before the launch."""
    memory = np.zeros(4096, np.float16)
    pointers = [memory.ctypes.data + offset] * 3
    assert text("gemm_relu").gemm_relu(*map(ctypes.c_void_p, pointers), *size, None) == status


def test_a_tensor_map_that_cannot_be_made_is_a_status(text: Callable[[str], ctypes.CDLL]) -> None:
    """Without a check of its own the launcher gets tl::launch's answer: rows of 202 bytes cannot be moved by TMA."""
    call = next(CALLS["boxes"](text("boxes")))
    extents, corner = (ctypes.c_int * 2)(100, 101), (ctypes.c_int * 2)(0, 0)
    pointers = [array.ctypes.data for array in (*call.inputs, call.output)]
    load = text("boxes").boxes_load
    assert load(0, *map(ctypes.c_void_p, pointers), extents, corner) == 3
    assert load(0, ctypes.c_void_p(pointers[0] + 2), ctypes.c_void_p(pointers[1]), call.after[0], corner) == 2


def test_products_of_random_numbers(text: Callable[[str], ctypes.CDLL]) -> None:
    """Accumulated in float32 and rounded once to half."""
    rng = np.random.default_rng(5)
    exact = gemm_call(130, 264, 136)
    a, b = (rng.standard_normal(x.shape).astype(np.float16) for x in exact.inputs)
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    call = Call(**{**vars(exact), "inputs": (a, b), "expected": expected, "tolerance": 1e-3})
    assert run(text("gemm_relu"), call) == []


@pytest.mark.parametrize(("name", "index"), [("gemm_relu", 1), ("attention", 1)])
def test_shared_memory_has_no_bank_conflicts(text: Callable[[str], ctypes.CDLL], name: str, index: int) -> None:
    """What threads write and read themselves: the copy of Q, the staging of C."""
    call = list(CALLS[name](text(name)))[index]
    engine, output = load_engine(), call.output.copy()
    pointers = [array.ctypes.data for array in (*call.inputs, output)]
    with engine.turn(EngineOptions(statistics=True)):
        assert call.run(text(name), pointers) == 0
        shared = engine.report()["statistics"]["shared"]
    call.check(output)
    assert shared and all(access["worst_ways"] == 1 for access in shared), shared
