"""Faults planted in rules and in the plan are found where the source runs; those of passes: test_rewrites.py."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from tests.conformance.kernels import small_program
from tests.differential.build import quick_load
from tile2cu.api import emit_program
from tile2cu.core.decisions import BARRIER
from tile2cu.core.program import Launch
from tile2cu.plan import overlapped
from tile2cu.plan.producer_ops import AwaitMmas
from tile2cu.rules import RULES, engine
from tile2cu.targets import find
from tile2cu_runtime import CheckError

PARAMS = 'X: T.Tensor((128, 64), "float16"), Z: T.Tensor((128, 64), "float16"), Y: T.Tensor((128, 64), "float32")'
REVERSED = """
S = T.alloc_shared((128, 64), "float16")
T.copy(X, S)
for i, j in T.Parallel(128, 64):
    Y[i, j] = S[127 - i, j]
"""
OVERLAPPED = """
Q_shared = T.alloc_shared((128, 64), "float16")
K_shared = T.alloc_shared((64, 64), "float16")
V_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((128, 64), "float32")
P = T.alloc_fragment((128, 64), "float16")
O = T.alloc_fragment((128, 64), "float32")
T.copy(Z, Q_shared)
T.clear(O)
for k in T.Pipelined(2, num_stages=2):
    T.copy(X[k * 64, 0], K_shared)
    T.copy(Z[k * 64, 0], V_shared)
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    T.copy(S, P)
    T.gemm(P, V_shared, O)
T.copy(O, Y)
"""
WRITTEN_AHEAD = """
S = T.alloc_shared((32, 64), "float16")
for k in T.Pipelined(3, num_stages=2):
    T.copy(X[k * 32, 0], S)
    for i, j in T.Parallel(32, 64):
        X[k * 32 + 32 + i, j] = S[31 - i, j] + 1
"""
Plant = Callable[[pytest.MonkeyPatch], None]


def run(statements: str, target: str, folder: Path) -> None:
    folder.mkdir()
    rng = np.random.default_rng(0)
    given = {name: rng.integers(-2, 3, (128, 64)).astype(np.float16) for name in "XZ"}
    emitted = emit_program(small_program(statements, PARAMS, threads=128), find(target))
    quick_load(emitted, folder, ("round-robin", "reverse", "shuffle"))(**given, Y=np.zeros((128, 64), np.float32))


def without_barriers(monkeypatch: pytest.MonkeyPatch) -> None:
    hazard = next(rule for rule in RULES if rule.id == "sync.shared.hazard")

    def planted(launch: Launch, context: engine.Context) -> Iterator[engine.Decision]:
        return (each for each in hazard.apply(launch, context) if each[1] is not BARRIER)

    rules = tuple(replace(rule, apply=planted) if rule is hazard else rule for rule in RULES)
    monkeypatch.setattr("tile2cu.api.RULES", rules)


def without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    done = overlapped.Lowering._done

    def planted(*args: object) -> tuple[object, ...]:
        return tuple(each for each in done(*args) if not isinstance(each, AwaitMmas))  # type: ignore[arg-type]

    monkeypatch.setattr(overlapped.Lowering, "_done", planted)


def prefetched_over_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads are started before statements that write what they read."""
    monkeypatch.setattr("tile2cu.rules.schedule.pipeline.why_no_pipeline", lambda *_: "")
    monkeypatch.setattr("tile2cu.analysis.prefetch.unprefetchable", lambda *_: ("", ""))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("plant", "statements", "target", "found"),
    [
        (without_barriers, REVERSED, "cuda:sm_80", "race"),
        (without_waits, OVERLAPPED, "cuda:sm_90a", "in flight|not waited for"),
        (prefetched_over_writes, WRITTEN_AHEAD, "cuda:sm_80", "race"),
    ],
    ids=["a barrier is left out", "a wait is left out", "a load is moved over a write"],
)
def test_a_planted_fault_is_found(
    plant: Plant, statements: str, target: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(statements, target, tmp_path / "right")
    plant(monkeypatch)
    with pytest.raises(CheckError, match=found):
        run(statements, target, tmp_path / "planted")
