"""Which tiles a kernel surely reads before it writes to them."""

import pytest

from tests.conformance.kernels import small_program
from tile2cu.analysis.uninitialised import read_unwritten
from tile2cu.api import emit_program
from tile2cu.targets import find

PARAMS = 'X: T.Tensor((256, 64), "float16"), Y: T.Tensor((64,), "float32")'
# What comes before the loop, in it, and behind it; which tiles are read first.
CASES = {
    "squares are added to nothing": (("pass", "squares[j] += X[k, j] * X[k, j]", "pass"), ["squares"]),
    "cleared before": (("T.clear(squares)", "squares[j] += X[k, j] * X[k, j]", "pass"), []),
    "written in the same turn": (("pass", "squares[j] = X[k, j]\n        squares[j] += 1", "pass"), []),
    "in an arm that need not be taken": (("pass", "squares[j] = T.if_then_else(k > 0, squares[j], 0)", "pass"), []),
    "in a branch of later turns": (("pass", "if k > 0:\n            squares[j] += 1", "T.clear(squares)"), []),
    "a reduction that goes on": (("pass", "squares[j] = 1", "T.reduce_max(squares, top, clear=False)"), ["top"]),
    "a reduction that begins": (("pass", "squares[j] = 1", "T.reduce_max(squares, top)"), []),
    "a copy of a tile": (("T.copy(S, squares)", "pass", "T.copy(X[0, :], S)"), ["S"]),
    "written in a branch": (("if bx == 0:\n    T.copy(X[0, :], S)", "pass", "T.copy(S, squares)"), []),
}


@pytest.mark.parametrize(("parts", "names"), CASES.values(), ids=CASES)
def test_tiles_that_are_read_first(parts: tuple[str, str, str], names: list[str]) -> None:
    before, inside, behind = parts
    statements = f"""
squares = T.alloc_fragment((64,), "float32")
top = T.alloc_fragment((1,), "float32")
S = T.alloc_shared((64,), "float16")
{before}
for k in T.serial(256):
    for j in T.Parallel(64):
        {inside}
{behind}
T.copy(squares, Y)
"""
    (launch,) = small_program(statements, PARAMS).launches
    assert [tile.name for tile in read_unwritten(launch)] == names


def test_the_text_says_so() -> None:
    statements = """
        squares = T.alloc_fragment((64,), "float32")
        for k in T.serial(256):
            for j in T.Parallel(64):
                squares[j] += X[k, j] * X[k, j]
        T.copy(squares, Y)
    """
    program = small_program(statements, PARAMS)
    (text,) = (text for name, text in emit_program(program, find("cuda:sm_80")).files.items() if name.endswith(".cu"))
    assert "// Read before it is written, so that results depend on its previous contents: squares (line 15)." in text
