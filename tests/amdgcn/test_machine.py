"""How waves go on together: apart at branches, together again, at barriers, and while they wait for one another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.build import compile_text
from tile2cu_runtime.amdgcn import CodeObject, simulate

SOURCE = """
#include "standalone.h"
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

// Wave 0 spins until wave 3 has set the flag.
KERNEL spin(const int* a, int* c) {
  __shared__ int flag;
  if (thread() == 64) flag = 0;
  sync();
  int wave = __builtin_amdgcn_readfirstlane(thread() / 64);
  if (wave == 3) __hip_atomic_store(&flag, a[0], __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
  int seen = 0;
  if (wave == 0)
    while (!seen) seen = __hip_atomic_load(&flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_WORKGROUP);
  c[thread()] = seen;
}

// Odd waves leave before the barrier.
KERNEL early_exit(const int* a, int* c) {
  __shared__ int s[256];
  int wave = __builtin_amdgcn_readfirstlane(thread() / 64);
  if (wave & 1) return;
  s[thread()] = a[thread()];
  sync();
  c[thread()] = s[thread() ^ 128];
}

// Barriers at two places: half of the waves stand at each.
KERNEL two_barriers(const int* a, int* c) {
  __shared__ int s[256];
  s[thread()] = a[thread()];
  int wave = __builtin_amdgcn_readfirstlane(thread() / 64), added = 0;
  if (wave & 1) {
    asm volatile("s_waitcnt lgkmcnt(0)\\n s_barrier" ::: "memory");
    added = 1000;
  } else {
    asm volatile("s_waitcnt lgkmcnt(0)\\n s_nop 1\\n s_barrier" ::: "memory");
    added = 2000;
  }
  c[thread()] = s[255 - thread()] + added;
}

// Two loads in flight; s_waitcnt vmcnt(1) is for the first only.
#define TWO_LOADS(used)                                                                     \\
  int x, y;                                                                                 \\
  asm volatile("global_load_dword %0, %2, %3\\n global_load_dword %1, %2, %3 offset:1024\\n" \\
               "s_waitcnt vmcnt(1)" : "=&v"(x), "=&v"(y) : "v"(thread() * 4), "s"(a) : "memory"); \\
  c[thread()] = used;
KERNEL first_load(const int* a, int* c) { TWO_LOADS(x) }
KERNEL second_load(const int* a, int* c) { TWO_LOADS(y) }
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    folder: Path = tmp_path_factory.mktemp("machine")
    return CodeObject.load(compile_text(SOURCE, "machine", "gfx942", folder))


def run(
    code: CodeObject, kernel: str, groups: int = 1, *, check: bool = True
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Kinds of findings, the input and the output."""
    a, c = np.arange(1, 513, dtype=np.int32), np.zeros(256, np.int32)
    result = simulate(code, kernel, groups, 256, [a, c], check=check, limit=1_000_000)
    return [finding.kind for finding in result.findings], a, c


def test_a_wave_that_spins_lets_others_go_on(code: CodeObject) -> None:
    _, _, c = run(code, "spin", check=False)
    assert c.tolist() == [1] * 64 + [0] * 192


def test_ended_waves_do_not_hold_up_a_barrier(code: CodeObject) -> None:
    found, a, c = run(code, "early_exit", groups=3)
    assert found == []
    assert c.tolist() == [*a[128:192], *[0] * 64, *a[0:64], *[0] * 64]


def test_waves_meet_at_barriers_of_different_places(code: CodeObject) -> None:
    found, a, c = run(code, "two_barriers")
    assert found == []
    np.testing.assert_array_equal(c, a[:256][::-1] + np.where(np.arange(256) // 64 % 2, 1000, 2000))


def test_a_count_lets_the_youngest_stay_in_flight(code: CodeObject) -> None:
    found, a, c = run(code, "first_load")
    assert found == [] and c.tolist() == a[:256].tolist()
    found, a, c = run(code, "second_load")
    assert found == ["missing-waitcnt"]
    assert c.tolist() != a[256:].tolist()


def test_many_workgroups_are_told_apart(code: CodeObject) -> None:
    """More workgroups than are simulated at once, all with the same fault: one finding, counted."""
    a, c = np.zeros(512, np.int32), np.zeros(256, np.int32)
    (finding,) = simulate(code, "second_load", 40, 256, [a, c]).findings
    assert finding.count == 40 * 4 and finding.workgroup == (0, 0, 0)
