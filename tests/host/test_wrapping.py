"""Tables' elements and scalar arguments near 2**31: indices, conditions and trip counts wrap as NumPy's int32 does."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body, write_body
from tests.host.overflow.audit import library_of, run
from tile2cu_runtime.spec import read_manifest

TARGETS = ["cuda:sm_80", "hip:gfx942"]
LOW, HIGH = -(2**31), 2**31 - 1
EXTREME = (LOW, LOW + 3, -130, 0, 5, HIGH - 200, HIGH)
HEAD = 'size = T.dynamic("size")\n'
PARAMS = 'X: T.Tensor((size,), "float32"), n: T.int32, m: T.int32, table: T.Tensor((4,), "int32")'
X = np.arange(1, 301, dtype=np.float32)
LANES = np.arange(256).astype(object)


def wrapped(numbers: object) -> np.ndarray:
    """The int32 of each integer."""
    return np.array((np.asarray(numbers, object) + 2**31) % 2**32 - 2**31).astype(np.int64)


def wrap(number: int) -> int:
    return int(wrapped(number))


def loaded(indices: object) -> np.ndarray:
    """Elements of X, zero out of bounds."""
    at = np.asarray(indices, np.int64)
    inside = (at >= 0) & (at < len(X))
    return np.where(inside, X[np.where(inside, at, 0)], 0)


def inputs() -> list[tuple[int, int, np.ndarray]]:
    return [(n, m, np.array([n, m, 5, 0], np.int32)) for n, m in product(EXTREME, (LOW, -7, 3, 200, HIGH))]


INDICES = """
bound = T.alloc_var("int32")
bound = table[0]
for k in T.serial(3):
    bound = bound * 3 - m
for i in T.Parallel(256):
    Y[0, i] = X[n + m + i]
for i in T.Parallel(256):
    Y[1, i] = X[n * m + i * 2]
for i in T.Parallel(256):
    Y[2, i] = X[table[i % 4] + 1]
for i in T.Parallel(256):
    Y[3, i] = T.if_then_else(bound + i > m, X[i - (-n)], -1.0)
for i in T.Parallel(256):
    if i + n < m + 3:
        Y[4, i] = X[(table[0] + i) // 3]
    else:
        Y[4, i] = 7.0
for i in T.Parallel(256):
    Y[5, i] = 0.0
T.sync_threads()
for i in T.Parallel(256):
    Y[5, n + i] = X[i]
for i in T.Parallel(256):
    Y[6, i] = T.cast(n + i + i, "float32")
for i in T.Parallel(256):
    Y[7, i] = T.cast((n + i) - (m + i), "float32")
for i in T.Parallel(256):
    Y[8, i] = T.cast((table[0] + i) * (m + i), "float32")
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_indices_and_conditions(target: str, tmp_path: Path) -> None:
    params = f'{PARAMS}, Y: T.Tensor((9, 256), "float32")'
    kernel = load_body(tmp_path, INDICES, params, head=HEAD, target=target, check=False)
    for n, m, table in inputs():
        bound = n
        for _ in range(3):
            bound = wrap(wrap(bound * 3) - m)
        stored = np.zeros(256)
        for place, value in zip(wrapped(n + LANES), X, strict=False):
            if 0 <= place < 256:
                stored[place] = value
        expected = [
            loaded(wrapped(wrap(n + m) + LANES)),
            loaded(wrapped(wrap(n * m) + 2 * LANES)),
            loaded(wrapped(np.resize(table, 256).astype(object) + 1)),
            np.where(wrapped(bound + LANES) > m, loaded(wrapped(LANES - wrap(-n))), -1),
            np.where(wrapped(LANES + n) < wrap(m + 3), loaded(wrapped(n + LANES) // 3), 7),
            stored,
            wrapped(n + 2 * LANES).astype(np.float32),
            np.full(256, wrap(n - m), np.float32),
            wrapped((n + LANES) * (m + LANES)).astype(np.float32),
        ]
        np.testing.assert_array_equal(kernel(X, n, m, table), expected, err_msg=f"{n}, {m}")


@pytest.mark.nightly  # the two of fewer operations run for each change
def test_no_int_overflows(tmp_path: Path) -> None:
    """g++'s sanitizer sees the arithmetic itself: a result may be right although C++ does not define it."""
    params = f'{PARAMS}, Y: T.Tensor((9, 256), "float32")'
    ((_, emitted),) = tile2cu.emit(write_body(tmp_path, INDICES, params, head=HEAD)).items()
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    library, manifest = library_of(tmp_path / "small.cu"), read_manifest(tmp_path / "small.json")
    for n, m, table in inputs():
        tables = {"table": lambda _sizes, _count, table=table: list(table)}
        outcome = run(library, manifest, {"size": 300}, scalars={"n": n, "m": m}, tables=tables)
        assert (outcome.status, outcome.faults) == (0, ()), f"{n}, {m}"


PREVIOUS = """
for i in T.serial(2):
    old = T.atomic_add(table[0], 1, return_prev=True)
    Y[old + 2147483000] = 1.0
"""


def test_no_int_overflows_with_what_an_atomic_returns(tmp_path: Path) -> None:
    params = 'table: T.Tensor((4,), "int32"), Y: T.Tensor((size,), "float32")'
    ((_, emitted),) = tile2cu.emit(write_body(tmp_path, PREVIOUS, params, head=HEAD)).items()
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    library, manifest = library_of(tmp_path / "small.cu"), read_manifest(tmp_path / "small.json")
    outcome = run(library, manifest, {"size": 300}, tables={"table": lambda _sizes, _count: [1000, 0, 0, 0]})
    assert (outcome.status, outcome.faults) == (0, ())


WIDER = """
A = T.alloc_shared((64, 16), "float16")
B = T.alloc_shared((16, 16), "float16")
S = T.alloc_fragment((64, 16), "float32")
T.fill(A, 1.0)
T.fill(B, 0.5)
for i, j in T.Parallel(64, 16):
    S[i, j] = T.if_then_else((j + table[0]) + wide[0] > 0, 0, -T.infinity("float32"))
T.gemm(A, B, S)
T.copy(S, Y)
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_mask_of_an_int_in_a_wider_sum(target: str, tmp_path: Path) -> None:
    """The int wraps in some columns, which are masked although the wider sum of the first and the last one is not."""
    params = 'table: T.Tensor((4,), "int32"), wide: T.Tensor((1,), "int64"), Y: T.Tensor((64, 16), "float32")'
    kernel = load_body(tmp_path, WIDER, params, target=target, check=False)
    for n, more in product((*EXTREME, HIGH - 10), (-(2**33), -20, 0, 20, 2**31, 2**40)):
        visible = wrapped(n + LANES[:16]) + more > 0
        found = kernel(np.full(4, n, np.int32), np.array([more]))
        np.testing.assert_array_equal(found, np.where(visible, 8, -np.inf)[None].repeat(64, 0), err_msg=f"{n}, {more}")


LOOPS = """
acc = T.alloc_fragment((256,), "float32")
tile = T.alloc_shared((256,), "float32")
T.clear(acc)
for k in T.Pipelined(n, T.min(m, n + 4), num_stages=2):
    T.copy(X[k * 8], tile)
    for i in T.Parallel(256):
        acc[i] += tile[i]
for k in T.serial(T.max(m - 9, table[0]), m, 4):
    for i in T.Parallel(256):
        acc[i] += X[i] + T.cast(k & 3, "float32")
T.copy(acc, Y)
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_trip_counts(target: str, tmp_path: Path) -> None:
    params = f'{PARAMS}, Y: T.Tensor((256,), "float32")'
    kernel = load_body(tmp_path, LOOPS, params, head=HEAD, target=target, check=False)
    for n, m, table in inputs():
        expected = np.zeros(256)
        for k in range(n, min(m, wrap(n + 4))):
            expected += loaded(wrapped(k * 8 + LANES))
        for k in range(max(wrap(m - 9), n), m, 4):
            expected += X[:256] + (k & 3)
        np.testing.assert_array_equal(kernel(X, n, m, table), expected, err_msg=f"{n}, {m}")


DERIVED = """
A = T.alloc_shared((64, 16), "float16")
B = T.alloc_shared((16, 16), "float16")
S = T.alloc_fragment((64, 16), "float32")
rows = T.alloc_fragment((16, 16), "float32")
tile = T.alloc_shared((16, 16), "float16")
T.fill(A, 1.0)
T.fill(B, 0.5)
T.clear(rows)
for i, j in T.Parallel(64, 16):
    S[i, j] = T.if_then_else(j <= i + n, 0, -T.infinity("float32"))
T.gemm(A, B, S)
for i, j in T.Parallel(64, 16):
    Y[i, j] = S[i, j]
for k in T.Pipelined(2, num_stages=2):
    for i, j in T.Parallel(16, 16):
        tile[i, j] = T.if_then_else(i < m, H[table[0] + i, j], 0)
    for i, j in T.Parallel(16, 16):
        rows[i, j] += tile[i, j]
for i, j in T.Parallel(16, 16):
    Y[64 + i, j] = rows[i, j]
for i, j in T.Parallel(16, 16):
    if n + i < m:
        Z[n + i, j] = rows[i, j]
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_derived_for_whole_tiles(target: str, tmp_path: Path) -> None:
    """The condition for tiles with masked elements, a copy's end, and the condition for a copy instead of stores."""
    params = (
        f"{PARAMS.replace('X', 'H').replace('(size,)', '(size, 16)').replace('float32', 'float16')}, "
        'Z: T.Tensor((64, 16), "float32"), Y: T.Tensor((80, 16), "float32")'
    )
    kernel = load_body(tmp_path, DERIVED, params, head=HEAD, target=target, check=False)
    source = np.arange(1, 321, dtype=np.float16).reshape(20, 16)
    i, j = np.arange(16).astype(object), np.arange(16)
    for n, m, table in [*inputs(), (HIGH - 5, HIGH, np.array([4, 0, 0, 0])), (40, 50, np.array([HIGH, 0, 0, 0]))]:
        z = np.zeros((64, 16), np.float32)
        visible = j[None, :] <= wrapped(LANES[:64] + n)[:, None]
        places = wrapped(int(table[0]) + i)
        read = [source[at] if k < m and 0 <= at < 20 else np.zeros(16) for k, at in enumerate(places)]
        stored = np.zeros((64, 16))
        for k, at in enumerate(wrapped(n + i)):
            if at < m and 0 <= at < 64:
                stored[at] = 2 * np.asarray(read[k], np.float32)
        found = kernel(source, n, m, table.astype(np.int32), z)
        np.testing.assert_array_equal(found[:64], np.where(visible, 8, -np.inf), err_msg=f"{n}, {m}")
        np.testing.assert_array_equal(found[64:], 2 * np.asarray(read, np.float32), err_msg=f"{n}, {m}")
        np.testing.assert_array_equal(z, stored, err_msg=f"{n}, {m}")


HASHES = """
for i in T.Parallel(32):
    Y[0, bx, i] = table[((bx * 32 + i) * 40503 + 12345) & 1023]
for i in T.Parallel(32):
    Y[1, bx, i] = table[((bx * 32 + i) * 40503 - 12345) % 1024]
for i in T.Parallel(32):
    Y[2, bx, i] = table[((bx * 32 + i) * 40503 >> 7) & 255]
for i in T.Parallel(32):
    Y[3, bx, i] = table[(-((bx * 32 + i) * 40503)) & 1023]
for i in T.Parallel(32):
    Y[4, bx, i] = table[(((bx * 32 + i) * 40503) ^ (bx * 77777 << 3)) % 64]
for i in T.Parallel(32):
    h = (bx * 32 + i) * 40503
    Y[5, bx, i] = table[h & 1023] + table[(h >> 3) % 128]
for i in T.Parallel(32):
    Y[6, bx, i] = (bx * 32 + i) * 1664525 + 1013904223 & 65535
for i in T.Parallel(32):
    Y[7, bx, i] = table[(bx * 32 + i) * 40503 // 128 % 256]
for i in T.Parallel(32):
    h = (bx * 32 + i) * 40503
    Y[8, bx, i] = h // 4 % 8 + h % 4
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_hashes_modulo_a_power_of_two_are_exact_and_limit_no_size(target: str, tmp_path: Path) -> None:
    params = 'table: T.Tensor((1024,), "int32"), Y: T.Tensor((9, rows, 32), "int32")'
    head = 'rows = T.dynamic("rows")\n'
    kernel = load_body(tmp_path, HASHES, params, grid="rows", head=head, target=target, check=False, threads=64)
    rows = 4000  # 32 * 40503 times as many exceed 2**32
    table, found = np.random.default_rng(0).integers(0, 1 << 20, 1024, np.int32), np.empty((9, rows, 32), np.int32)
    kernel(table, found)
    block = np.arange(rows)[:, None]  # of 64 bits, which nothing here exceeds
    h = (block * 32 + np.arange(32)) * 40503
    indices = ((h + 12345) & 1023, (h - 12345) % 1024, h >> 7 & 255, -h & 1023, (h ^ (block * 77777 << 3)) % 64)
    expected = [table[index] for index in indices]
    expected.append(table[h & 1023] + table[(h >> 3) % 128])
    expected.append((h // 40503 * 1664525 + 1013904223) & 65535)
    expected += [table[h // 128 % 256], h // 4 % 8 + h % 4]
    np.testing.assert_array_equal(found, expected)


def test_no_int_of_a_hash_overflows(tmp_path: Path) -> None:
    params = 'table: T.Tensor((1024,), "int32"), Y: T.Tensor((9, rows, 32), "int32")'
    path = write_body(tmp_path, HASHES, params, grid="rows", head='rows = T.dynamic("rows")\n', threads=64)
    ((_, emitted),) = tile2cu.emit(path).items()
    for name, text in emitted.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    outcome = run(library_of(tmp_path / "small.cu"), read_manifest(tmp_path / "small.json"), {"rows": 2**26})
    assert (outcome.status, outcome.faults) == (0, ())
