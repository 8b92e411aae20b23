"""Compiled kernels that reach memory in every way, against plain NumPy."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.amdgcn.build import KERNELS, compile_hip
from tile2cu_runtime.amdgcn import CodeObject, Result, SimulatorError, simulate

RANDOM = np.random.default_rng(3)


@pytest.fixture(scope="module", params=["gfx90a", "gfx942"])
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CodeObject:
    return CodeObject.load(compile_hip(KERNELS / "memory.hip", request.param, tmp_path_factory.mktemp("memory")))


def clean(result: Result) -> Result:
    assert result.is_clean, [str(finding) for finding in result.findings]
    return result


def ints(*shape: int, high: int = 1000) -> np.ndarray:
    return RANDOM.integers(-high, high, shape, dtype=np.int32)


def test_buffer_instructions_stop_at_the_record_count(code: CodeObject) -> None:
    a, c, n = ints(512), np.full(512, -7, np.int32), 301
    clean(simulate(code, "buffer_copy", 2, 64, [a, c, n]))
    np.testing.assert_array_equal(c, [*a[:n], *[-7] * (512 - n)])


@pytest.mark.parametrize("n", [0, 1, 63, 64, 255, 256, 257, 1000])
def test_ragged(code: CodeObject, n: int) -> None:
    """Buffers of exactly n elements: an access to the next one would be a finding."""
    a, c = RANDOM.normal(size=n).astype(np.float32), np.zeros(n, np.float32)
    clean(simulate(code, "plain_ragged", 4, 256, [a, c, n]))
    np.testing.assert_array_equal(c, 2 * a)


def test_narrow_types(code: CodeObject) -> None:
    sources = [RANDOM.integers(np.iinfo(kind).min, np.iinfo(kind).max, 64, dtype=kind) for kind in (np.int8, np.uint8)]
    sources += [
        RANDOM.integers(np.iinfo(kind).min, np.iinfo(kind).max, 64, dtype=kind) for kind in (np.int16, np.uint16)
    ]
    total, out = np.zeros(64, np.int32), np.zeros(64, np.int16)
    clean(simulate(code, "narrow", 1, 64, [*sources, total, out]))
    expected = sum(source.astype(np.int32) for source in sources)
    np.testing.assert_array_equal(total, expected)
    np.testing.assert_array_equal(out, expected.astype(np.int16))


def test_atomics(code: CodeObject) -> None:
    counter, total, largest = np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros(1, np.uint32)
    order, wide = np.full(768, -1, np.int32), np.array([5], np.uint64)
    clean(simulate(code, "atomics", 3, 256, [counter, total, largest, order, wide]))
    assert (counter[0], total[0], largest[0]) == (768, 384.0, max(i * 7 % 1024 for i in range(768)))
    assert sorted(order.tolist()) == list(range(768))
    assert wide[0] == 5 + (768 << 32)


def test_atomics_in_lds(code: CodeObject) -> None:
    a, c = ints(256), np.zeros(16, np.int32)
    clean(simulate(code, "lds_atomics", 1, 256, [a, c]))
    np.testing.assert_array_equal(c, np.bincount(a & 15, minlength=16))


def test_scratch_is_each_lanes_own(code: CodeObject) -> None:
    a, c = ints(256), np.zeros(256, np.int32)
    clean(simulate(code, "scratch", 1, 256, [a, c]))
    np.testing.assert_array_equal(c, (a - np.arange(256)) & 31)


def test_flat_addresses_of_both_kinds(code: CodeObject) -> None:
    a, c = ints(256), np.zeros(256, np.int32)
    clean(simulate(code, "flat", 1, 256, [a, c]))
    lane = np.arange(256)
    np.testing.assert_array_equal(c, np.where(lane % 3 != 0, a, -lane))


def test_divergent_lanes_and_waves(code: CodeObject) -> None:
    trips, c = RANDOM.integers(0, 20, 256, dtype=np.int32), np.zeros(256, np.int32)
    clean(simulate(code, "divergent", 1, 256, [trips, c]))
    totals = np.array([sum(k * k for k in range(n)) for n in trips])
    for wave in range(4):
        part = totals[64 * wave : 64 * wave + 64]
        for _ in range(wave):
            part += part[0] & 1
    np.testing.assert_array_equal(c, totals[np.arange(256) ^ 64])


def test_three_dimensions_and_hidden_arguments(code: CodeObject) -> None:
    c = np.zeros(2 * 3 * 2 * (5 * 4 * 3), np.int32)
    clean(simulate(code, "ids", (2, 3, 2), (5, 4, 3), [c]))
    x, y, z = (axis.ravel(order="F") for axis in np.indices((5, 4, 3)))
    np.testing.assert_array_equal(c.reshape(12, 60), np.arange(12)[:, None] * 1000 + x * 100 + y * 10 + z)


def test_arguments_by_value(code: CodeObject) -> None:
    a, c = RANDOM.normal(size=64).astype(np.float32), np.zeros(64, np.float32)
    clean(simulate(code, "by_value", 1, 64, [struct.pack("<if", 3, 0.5), 1, 4.0, a, c]))
    np.testing.assert_array_equal(c, (a + np.float32(3)) * np.float32(2))


def test_dynamic_lds(code: CodeObject) -> None:
    a, c = ints(256), np.zeros(256, np.int32)
    clean(simulate(code, "dynamic_lds", 1, 256, [a, c], dynamic_lds=1024))
    np.testing.assert_array_equal(c, a[::-1])
    result = simulate(code, "dynamic_lds", 1, 256, [a, c], dynamic_lds=512)
    assert "lds-out-of-bounds" in {finding.kind for finding in result.findings}
    with pytest.raises(SimulatorError, match="of LDS"):
        simulate(code, "dynamic_lds", 1, 256, [a, c], dynamic_lds=(64 << 10) + 4)


def test_constants_and_calls(code: CodeObject) -> None:
    a, c = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    clean(simulate(code, "constants", 1, 256, [a, c]))
    np.testing.assert_array_equal(c, 10 ** (a & 7))
    clean(simulate(code, "calls", 1, 256, [a, c]))
    assert c[:8].tolist() == [0, 1, 7, 2, 5, 8, 16, 3]


def test_wrong_launches_are_refused(code: CodeObject) -> None:
    a, c = ints(256), np.zeros(256, np.int32)
    with pytest.raises(SimulatorError, match="takes 2 arguments"):
        simulate(code, "flat", 1, 256, [a])
    with pytest.raises(SimulatorError, match="no kernel"):
        simulate(code, "falt", 1, 256, [a, c])
    with pytest.raises(SimulatorError, match="contiguous"):
        simulate(code, "flat", 1, 256, [np.zeros(512, np.int32)[::2], c])
    with pytest.raises(SimulatorError, match="instruction limit"):
        simulate(code, "calls", 1, 256, [a, c], limit=100)
