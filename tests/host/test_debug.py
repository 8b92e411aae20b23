"""What kernels say and check while they run: T.print, T.device_assert and assert."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import LaunchError

ROWS, COLS = 37, 5
PARAMS = 'X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")'
RNG = np.random.default_rng(0)


def loaded(folder: Path, statements: str, **options: object) -> object:
    return load_body(folder, statements, PARAMS, arguments="M, N", M=ROWS, N=COLS, check=False, **options)


PRINTS = """
    S = T.alloc_shared((64, 8), "float32")
    F = T.alloc_fragment((64, 8), "float32")
    most = T.alloc_fragment((64,), "float32")
    own = T.alloc_local((3,), "int32")
    T.copy(X[0, 0], S)
    T.copy(S, F)
    T.reduce_max(F, most, dim=1)
    for i in T.serial(3):
        own[i] = i * 7
    T.print(S, msg="shared")
    T.print(F)
    T.print(own)
    for i in T.Parallel(64):
        T.print(most[i], msg="most")
    T.copy(F, Y[0, 0])
"""


def test_tiles_are_printed_once_an_element(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = loaded(tmp_path, PRINTS)
    x = RNG.integers(-9, 10, (ROWS, COLS)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x)
    printed = capfd.readouterr().out
    whole = np.zeros((64, 8), np.float32)
    whole[:ROWS, :COLS] = x
    lines = (tmp_path / "small.py").read_text(encoding="utf-8").splitlines()
    for name, text, mark in (("shared", "T.print(S", "shared"), ("F", "T.print(F", "F")):
        line = next(number for number, written in enumerate(lines, 1) if text in written)
        found = re.findall(rf"^small\.py:{line}: {mark}\((\d+), (\d+)\) = (\S+) in block", printed, re.MULTILINE)
        assert len(found) == whole.size, name
        for i, j, value in found:
            assert float(value) == whole[int(i), int(j)]
    own = re.findall(r": own\((\d)\) = (\d+) in .* thread (\d+)", printed)
    assert own == [
        ("0", "0", "0"),
        ("1", "7", "0"),
        ("2", "14", "0"),
    ]
    most = re.findall(r": most = (\S+) in block", printed)  # several threads hold a row: one of them prints it
    assert sorted(map(float, most)) == sorted(whole.max(axis=1))


def test_numbers_are_printed_by_each_thread_that_comes_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    statements = """
        tx = T.get_thread_binding()
        if tx % 50 == 3:
            T.print(tx * 2 + M, msg='a "name" \\\\ 100% ü')
        T.copy(X, Y)
    """
    loaded(tmp_path, statements)(np.zeros((ROWS, COLS), np.float32))
    found = re.findall(
        r'small\.py:\d+: a "name" \\ 100% ü = (\d+) in block \(0, 0, 0\), thread (\d+)', capfd.readouterr().out
    )
    assert found == [(str(2 * tx + ROWS), str(tx)) for tx in (3, 53, 103)]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    "check",
    [
        'T.device_assert(X[bx, 0] < 3.0, "too large")',
        'assert X[bx, 0] < 3.0, "too large"',
        'assert X[bx, 0] < 3.0, f"too large: {bx}"',
    ],
)
def test_assertions_end_the_launch_and_name_their_line(check: str, tmp_path: Path) -> None:
    kernel = loaded(tmp_path, f"{check}\nT.copy(X, Y)", grid=str(ROWS))
    x = np.zeros((ROWS, COLS), np.float32)
    np.testing.assert_array_equal(kernel(x), x)
    x[17, 0] = 4
    line = next(
        n for n, text in enumerate((tmp_path / "small.py").read_text(encoding="utf-8").splitlines(), 1) if check in text
    )
    with pytest.raises(LaunchError, match=rf"small\.py:{line}: .*too large"):
        kernel(x)


def test_assertions_of_elements_are_checked_where_the_elements_lie(tmp_path: Path) -> None:
    statements = """
        F = T.alloc_fragment((64, 8), "float32")
        T.copy(X[0, 0], F)
        for i, j in T.Parallel(64, 8):
            T.device_assert(F[i, j] >= 0.0, "negative")
        T.copy(F, Y[0, 0])
    """
    kernel = loaded(tmp_path, statements)
    x = np.abs(RNG.standard_normal((ROWS, COLS))).astype(np.float32)
    np.testing.assert_array_equal(kernel(x), x)
    x[ROWS - 1, COLS - 1] = -1
    with pytest.raises(LaunchError, match="negative"):
        kernel(x)
