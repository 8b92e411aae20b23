"""Which overlapping turns end with a warpgroup's own rows."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import SCHEDULE
from tile2cu.core.program import Loop
from tile2cu.core.schedule import MmaOverlap, WarpgroupTripCount

# An online softmax under a causal mask, as short as it gets.
BODY = """
Q_shared = T.alloc_shared(({rows}, 128), "float16")
K_shared = T.alloc_shared(({columns}, 128), "float16")
V_shared = T.alloc_shared(({columns}, 128), "float16")
S = T.alloc_fragment(({rows}, {columns}), "float32")
P = T.alloc_fragment(({rows}, {columns}), "float16")
O = T.alloc_fragment(({rows}, 128), "float32")
best = T.alloc_fragment(({rows},), "float32")
before = T.alloc_fragment(({rows},), "float32")
part = T.alloc_fragment(({rows},), "float32")
total = T.alloc_fragment(({rows},), "float32")
{first}
T.copy(Z[bx * {rows}, 0], Q_shared)
T.clear(O)
T.clear(total)
T.fill(best, -T.infinity("float32"))
for k in T.Pipelined({turns}, num_stages=2):
    T.copy(Z[k * {columns}, 0], K_shared)
    T.copy(Z[k * {columns}, 64], V_shared)
    for i, j in T.Parallel({rows}, {columns}):
        {names}
        S[i, j] = T.if_then_else({visible}, 0, -T.infinity("float32"))
    T.gemm(Q_shared, K_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.{policy})
    T.copy(best, before)
    {best}
    for i, j in T.Parallel({rows}, {columns}):
        S[i, j] = T.exp2({exponent})
    T.reduce_sum(S, part, dim=1)
    for i in T.Parallel({rows}):
        total[i] = total[i] * T.exp2(before[i] * {scale} - best[i] * {scale}) + {added}
    T.copy(S, P)
    for i, j in T.Parallel({rows}, 128):
        O[i, j] *= T.exp2(before[i] * {scale} - best[i] * {scale})
    T.gemm(P, V_shared, O, policy=T.GemmWarpPolicy.{policy})
for i, j in T.Parallel({rows}, 128):
    O[i, j] = O[i, j] / total[i]
{after}
T.copy(O, Y[bx * {rows}, 0])
"""
PLAIN = {
    "rows": 192,
    "columns": 80,
    "threads": 384,
    "turns": "T.ceildiv((bx + 1) * 192, 80)",
    "visible": "bx * 192 + i >= k * 80 + j",
    "policy": "FullRow",
    "best": "T.reduce_max(S, best, dim=1, clear=False)",
    "exponent": "S[i, j] * 0.5 - best[i] * 0.5",
    "scale": "0.5",
    "added": "part[i]",
    "after": "",
    "first": "",
    "names": "",
}


def ends(**changes: object) -> WarpgroupTripCount | None:
    """Where a warpgroup's turns end; None where all warpgroups have the block's turns."""
    values = PLAIN | changes
    threads = values.pop("threads")
    assert isinstance(threads, int)
    context = resolved(BODY.format(**values), threads=threads, target="cuda:sm_90a")
    loop = next(op for op in context.statements if isinstance(op, Loop))
    found = context.facts.get(loop, SCHEDULE)
    assert isinstance(found, MmaOverlap)
    return found.trips


WRITTEN: dict[str, dict[str, object]] = {
    "as it is": {},
    "the other way round": {"visible": "j + 80 * k <= i + bx * 192"},
    "a maximum of its own": {
        "best": """T.reduce_max(S, best, dim=1)
    for i in T.Parallel(192):
        best[i] = T.max(best[i], before[i])"""
    },
    "results by shared memory": {
        "after": """O_shared = T.alloc_shared((192, 128), "float16")
T.copy(O, O_shared)
T.copy(O_shared, Y[bx * 192, 0])"""
    },
}


@pytest.mark.parametrize("case", WRITTEN)
def test_turns_end_with_a_warpgroups_own_rows(case: str) -> None:
    found = ends(**WRITTEN[case])
    assert found is not None and found.last == found.start and not found.may_see_none


BEHIND: dict[str, tuple[str, bool]] = {  # what is visible; whether the first row may see no column
    "cached keys": ("bx * 192 + i + 512 >= k * 80 + j", False),
    "fewer columns, not known how many": ("bx * 192 + i - m >= k * 80 + j", True),
    "on the other side": ("bx * 192 + i >= k * 80 + j - 64", False),
    "another step from block to block": ("bx * 200 + i >= k * 80 + j", False),
    "a number from memory": ("bx * 192 + i + more >= k * 80 + j", True),
}


@pytest.mark.parametrize("case", BEHIND)
def test_rows_may_see_more_columns_than_their_number(case: str) -> None:
    visible, may_see_none = BEHIND[case]
    found = ends(visible=visible, first='more = T.cast(A[bx, 0], "int32")')
    assert found is not None and found.last != found.start and found.may_see_none == may_see_none


def test_a_mask_may_name_what_it_compares() -> None:
    names = "row = bx * 192 + i\n        seen = row + 512\n        column = k * 80 + j"
    found = ends(visible="seen >= column", names=names)
    assert found is not None and not found.may_see_none


REFUSED: dict[str, dict[str, object]] = {
    "all end together, as columns are as many as rows": {
        "rows": 128,
        "columns": 128,
        "threads": 256,
        "turns": "bx + 1",
        "visible": "bx * 128 + i >= k * 128 + j",
    },
    "as many turns in all blocks": {"turns": "8"},
    "the first row is masked whole": {"visible": "bx * 192 + i > k * 80 + j"},
    "a window": {"visible": "bx * 192 + i >= k * 80 + j and bx * 192 + i < k * 80 + j + 64"},
    "a mask that opens from turn to turn": {"visible": "bx * 192 + i <= k * 80 + j"},
    "a mask that skips a column a row": {"visible": "bx * 192 + 2 * i >= k * 80 + j"},
    "the first rows see none": {"visible": "bx * 192 + i - 1 >= k * 80 + j"},
    "a mask that moves from turn to turn": {"visible": "bx * 192 + i + k * m >= k * 80 + j"},
    "a mask of each thread's own": {"visible": "bx * 192 + i + T.get_thread_binding() >= k * 80 + j"},
    "a mask from memory that turns read": {"visible": "bx * 192 + i + T.cast(A[bx, 0], 'int32') >= k * 80 + j"},
    "a turn that counts": {"added": "part[i] + 1.0"},
    "a sum of other values": {"exponent": "best[i] * 0.5 - S[i, j] * 0.5"},
    "a factor that is not 1": {"scale": "0.5 - 0.25 * before[i]"},
    "a turn's own value is kept": {"after": "for i, j in T.Parallel(192, 128):\n    O[i, j] += part[i]"},
    "a row that others read": {"after": "for i, j in T.Parallel(192, 128):\n    O[i, j] += best[191 - i]"},
    "results at other rows": {"after": "T.copy(total, A[0:192, 0])"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_turns_are_the_blocks(case: str) -> None:
    assert ends(**REFUSED[case]) is None
