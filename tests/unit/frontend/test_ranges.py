"""Elements and parts of tiles that are outside of them in every turn, and those that may be inside."""

from collections.abc import Callable

import pytest

TILES = """
S = T.alloc_shared((block_M, 64), "float32")
F = T.alloc_fragment((block_M, 64), "float32")
L = T.alloc_local((4,), "float32")
"""

# statement, what is said of its index
REFUSED = {
    "for i, j in T.Parallel(64, 64): S[i, j + 64] = 0": "index j + 64 runs from 64 to 127, outside of dimension 1",
    "for i, j in T.Parallel(64, 64): F[i, j] = S[i - 64, j]": "index i - 64 runs from -64 to -1, outside",
    "for i in T.serial(N): L[i + 4] = 0": "index i + 4 runs from 4 on, outside of dimension 0",
    "for i in T.serial(2, N): L[1 - i] = 0": "index 1 - i runs up to -1, outside of dimension 0",
    "for i in T.serial(1): L[(i + 2) * 2] += 1": "index (i + 2) * 2 is always 4, outside of dimension 0",
    "for i, j in T.Parallel(64, 64): T.atomic_add(S[i, j + 64], 1.0)": "index j + 64 runs from 64 to 127, outside",
    "for k in T.serial(1, 4): T.copy(A[0, k], S[0:64, k * 32 : k * 32 + 64])": (
        "a part of 64 elements at k * 32, which runs from 32 to 96, reaches outside of dimension 1"
    ),
    "for k in T.serial(4): T.fill(F[k * 8 + 60 : k * 8 + 68, :], 0)": (
        "a part of 8 elements at k * 8 + 60, which runs from 60 to 84, reaches outside of dimension 0"
    ),
    "for i in T.serial(4):\n    if i > 2 and bx > 1: L[i + 4] = 0": "index i + 4 runs from 4 to 7, outside",
}

ACCEPTED = (
    "for i, j in T.Parallel(64, 64): S[i, j + 63] = 0",  # one turn is inside
    "for i in T.serial(0): L[i + 4] = 0",
    "for i in T.serial(8, 0, -1): L[i - 5] = 0",
    "for i in T.serial(3, 3, 2): L[i + 4] = 0",
    "for i in T.serial(1):\n    if i > 0: L[i - 1] = 0",  # of one turn: nothing comes before it
    "for i in T.serial(1):\n    if i == 0: L[i] = 0\n    else: L[i - 1] = 0",
    "for i in T.serial(1): L[i] = T.if_then_else(i > 0, L[i - 1], 0)",
    "for i in T.serial(1):\n    if i > 0 and L[i - 1] > 0: L[i] = 0",
    "for i in T.serial(1):\n    if not (i <= 0 or L[i - 1] > 0): L[i] = 0",
    "for i in T.serial(4):\n    if block_M > 64: L[i + 4] = 0",
    "for i in T.serial(N): B[i, 0] = A[i + M, 0]",  # a tensor's guards see to it
    "for k in T.serial(4): T.copy(A[0, k], S[0:64, k * 32 : k * 32 + 64])",
    'for i in T.serial(4): L[T.cast(i - 4, "uint32") % 4] = 0',
)


@pytest.mark.parametrize(("statement", "said"), REFUSED.items(), ids=REFUSED.keys())
def test_refused_where_no_turn_is_inside(refusal: Callable[..., str], statement: str, said: str) -> None:
    assert refusal(TILES + statement).startswith(f"F024 {said}")


@pytest.mark.parametrize("statement", ACCEPTED)
def test_accepted_where_a_turn_may_be_inside_or_none_comes(body: Callable[..., object], statement: str) -> None:
    assert body(TILES + statement)
