"""Emitted texts on the CPU engine, loaded from Python: results, arguments in place, and what checked runs find.

The texts under fixtures/ are written by hand as tile2cu emits them, with their manifests.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import CheckError, LaunchError, load_kernel
from tile2cu_runtime.engine import EngineOptions, build_engine, load_engine

pytestmark = pytest.mark.binding

FIXTURES = Path(__file__).with_name("fixtures")
BF16 = ml_dtypes.bfloat16
Emit = Callable[..., Path]


@pytest.fixture
def emit(tmp_path: Path) -> Emit:
    """A folder as tile2cu writes it: a fixture with some of its text replaced, and a manifest with true hashes."""

    def write(name: str, *replacements: tuple[str, str]) -> Path:
        folder = Path(shutil.copytree(FIXTURES / name, tmp_path / name, dirs_exist_ok=True))
        text = (folder / f"{name}.cu").read_text(encoding="utf-8")
        for old, new in replacements:
            assert text.count(old) == 1 and old.count("\n") == new.count("\n"), "lines must stay where they are"
            text = text.replace(old, new)
        (folder / f"{name}.cu").write_text(text, encoding="utf-8")
        manifest = (folder / f"{name}.json").read_text(encoding="utf-8")
        for suffix in ("cu", "h", "py"):
            digest = hashlib.sha256((folder / f"{name}.{suffix}").read_bytes()).hexdigest()
            manifest = manifest.replace(f"@{name}.{suffix}", digest)
        (folder / f"{name}.json").write_text(manifest, encoding="utf-8")
        return folder

    return write


def numbers(count: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(count).integers(-100, 100, count).astype(dtype)


def reversed_blocks(a: Any) -> Any:
    """What the fixture `reverse` computes; places beyond the end read as zero."""
    padded = np.zeros(-(-a.size // 256) * 256, a.dtype)
    padded[: a.size] = a
    return padded.reshape(-1, 256)[:, ::-1].reshape(-1)[: a.size]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("count", [0, 1, 1000, 1024, 5003])
def test_vector_add(emit: Emit, count: int, check: bool) -> None:
    kernel = load_kernel(emit("vector_add"), device="cpu", check=check)
    a, b = numbers(count), numbers(count + 1)[:count]
    np.testing.assert_array_equal(kernel(a, b), a + b)
    assert kernel.report is None if not check else kernel.report is not None and kernel.report.is_clean


@pytest.mark.parametrize("check", [False, True])
def test_a_workspace_is_provided(emit: Emit, check: bool) -> None:
    kernel = load_kernel(emit("total"), device="cpu", check=check)
    for count in (1, 256, 257, 40_000):
        a = numbers(count)
        np.testing.assert_array_equal(kernel(a), [a.sum()])
        assert not check or (kernel.report is not None and kernel.report.is_clean)


def test_a_workspace_may_be_lent(emit: Emit) -> None:
    """By repeats.cpp, whose words are addresses and sizes, and then the workspace."""
    kernel = load_kernel(emit("total"), device="cpu")
    a, total = numbers(1000), np.zeros(1, np.float32)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
        address(kernel._module.launch, b"tile2cu.launch")
    )
    memory = np.zeros(kernel._module.workspace_bytes(0, 0, a.size, 0), np.uint8)
    for lent in (memory.ctypes.data, 0):
        total[:] = 0
        words = np.array([a.ctypes.data, total.ctypes.data, a.size, lent], np.uint64)
        with load_engine().turn(EngineOptions()):
            assert launch(words.ctypes.data, None) == 0
        np.testing.assert_array_equal(total, [a.sum()])
    sums = [part.sum() for part in np.split(a, [256, 512, 768])]
    np.testing.assert_array_equal(memory.view(np.float32)[:4], sums)


def test_a_workspace_starts_uninitialised(emit: Emit) -> None:
    kernel = load_kernel(emit("total", ("partial(bx) = sum", "partial(bx) += sum")), device="cpu", check=True)
    with pytest.raises(CheckError, match="uninitialised"):
        kernel(numbers(300))


def test_a_workspace_ends_where_its_size_says(emit: Emit) -> None:
    larger = ("return tl::workspace_bytes<float>(tl::ceildiv(N, block_N));", "return N == 0 ? 0 : 128;")
    kernel = load_kernel(emit("total", larger), device="cpu", check=True)
    kernel(numbers(32 * 256))
    with pytest.raises(CheckError, match="past the end of a 128-byte allocation"):
        kernel(numbers(33 * 256))


def test_the_source_is_the_text(emit: Emit) -> None:
    folder = emit("vector_add")
    kernel = load_kernel(folder, device="cpu")
    assert kernel.source == (folder / "vector_add.cu").read_text(encoding="utf-8")
    assert kernel.manifest.launch.threads == 256
    assert repr(kernel) == "<tile2cu kernel vector_add(A, B, C) for cuda:sm_80 on cpu>"


def test_writes_in_place(emit: Emit) -> None:
    a, b, out = numbers(1500), numbers(1501)[:1500], np.full(1500, np.nan, np.float32)
    for check in (False, True):
        out[:] = np.nan
        assert load_kernel(emit("vector_add"), device="cpu", check=check)(a, b, out) is None
        np.testing.assert_array_equal(out, a + b)


def test_bfloat16(emit: Emit) -> None:
    kernel = load_kernel(emit("reverse"), device="cpu", check=True, schedules=("round-robin", "reverse", "shuffle"))
    a = numbers(700, BF16)
    out = kernel(a)
    assert out.dtype == BF16
    np.testing.assert_array_equal(out, reversed_blocks(a))
    assert kernel.report is not None and kernel.report.schedules == ("round-robin", "reverse", "shuffle")
    assert kernel.report.unstable == ()
    np.testing.assert_array_equal(kernel(a[1:]), reversed_blocks(a[1:]))


@pytest.mark.needs("torch")
def test_torch_on_the_cpu(emit: Emit) -> None:
    import torch

    kernel = load_kernel(emit("reverse"), device="cpu")
    a = torch.arange(600).to(torch.bfloat16)
    out = kernel(a)
    assert out.dtype == torch.bfloat16
    np.testing.assert_array_equal(out.float().numpy(), reversed_blocks(a.float().numpy()))
    assert kernel(a, out.zero_()) is None
    assert torch.equal(out[:256], a[:256].flip(0))


def test_a_race_names_both_python_lines(emit: Emit) -> None:
    folder = emit("reverse", ("tl::sync_threads();", "                  "))
    kernel = load_kernel(folder, device="cpu", check=True)
    with pytest.raises(CheckError) as raised:
        kernel(numbers(512, BF16))
    report = raised.value.report
    assert kernel.report is report and not report.is_clean
    finding = next(finding for finding in report.findings if "race" in finding.kind)
    assert {place.python_line for place in finding.places} == {14, 16}
    assert {place.line for place in finding.places} == {27, 33}
    text = str(raised.value)
    assert text.startswith("error[T2C-R300]: the checked run of reverse has findings\n\nerror[")
    assert "16 |                 B[bx * block_N + i] = A_shared[block_N - 1 - i]" in text
    assert "   = reverse.cu:33: B(bx * block_N + i) = A_shared(block_N - 1 - i);" in text
    assert "14 |                 A_shared[i] = A[bx * block_N + i]" in text


def test_findings_can_be_left_in_the_report(emit: Emit) -> None:
    folder = emit("reverse", ("tl::sync_threads();", "                  "))
    kernel = load_kernel(folder, device="cpu", check=True, schedules=("round-robin", "shuffle"), on_finding="report")
    assert kernel(numbers(512, BF16)).shape == (512,)
    assert kernel.report is not None
    assert any(finding.schedules == ("round-robin", "shuffle") for finding in kernel.report.findings)


def test_a_read_out_of_bounds_names_the_python_line(emit: Emit) -> None:
    folder = emit("vector_add", ("(A_data, tl::predicated(N))", "(A_data, tl::predicated(N + 64))"))
    kernel = load_kernel(folder, device="cpu", check=True)
    a, b = numbers(1000), numbers(1000)
    with pytest.raises(CheckError) as raised:
        kernel(a, b)
    finding = raised.value.report.findings[0]
    assert "bounds" in finding.kind + finding.message
    assert (finding.places[0].python_line, finding.places[0].line) == (13, 24)
    assert "vector_add.py:13" in str(finding)


def test_reading_an_output_is_found(emit: Emit) -> None:
    folder = emit(
        "vector_add",
        ("B(bx * block_N + i);", "C(bx * block_N + i);"),
    )
    kernel = load_kernel(folder, device="cpu", check=True)
    a = numbers(1024)
    with pytest.raises(CheckError) as raised:
        kernel(a, a.copy())
    assert any("uninit" in finding.kind + finding.message for finding in raised.value.report.findings)
    kernel(a, a.copy(), np.zeros(1024, np.float32))


def test_an_edited_text_runs_and_claims_no_python_lines(emit: Emit) -> None:
    folder = emit("reverse", ("tl::sync_threads();", "                  "))
    (folder / "reverse.cu").write_text(
        "// edited by hand\n" + (folder / "reverse.cu").read_text(encoding="utf-8"), encoding="utf-8"
    )
    with pytest.raises(CheckError) as raised:
        load_kernel(folder, device="cpu", check=True)(numbers(512, BF16))
    places = [place for finding in raised.value.report.findings for place in finding.places]
    assert places and all(place.python_line == 0 for place in places)
    assert {28, 34} <= {place.line for place in places}


def test_changed_python_is_not_shown(emit: Emit, tmp_path: Path) -> None:
    folder = emit("reverse", ("tl::sync_threads();", "                  "))
    source = (folder / "reverse.py").read_text(encoding="utf-8")
    (folder / "reverse.py").write_text("# changed\n" + source, encoding="utf-8")
    with pytest.raises(CheckError) as raised:
        load_kernel(folder, device="cpu", check=True)(numbers(512, BF16))
    assert "reverse.py:16" in str(raised.value) and "T.Parallel" not in str(raised.value)
    (tmp_path / "elsewhere.py").write_text(source, encoding="utf-8")
    with pytest.raises(CheckError, match=r"elsewhere.py:16\n   \|\n16 \|"):
        load_kernel(folder, device="cpu", check=True, source=tmp_path / "elsewhere.py")(numbers(512, BF16))


def test_statistics(emit: Emit) -> None:
    kernel = load_kernel(emit("reverse"), device="cpu", statistics=True)
    kernel(numbers(512, BF16))
    assert kernel.report is not None
    lines = {access.place.python_line for access in kernel.report.shared}
    assert lines == {14, 16}
    assert all(access.is_free_of_conflicts and access.bytes == 2 for access in kernel.report.shared)
    assert {access.place.python_line for access in kernel.report.global_memory} == {14, 16}
    assert str(next(access for access in kernel.report.shared if access.access == "write")) == (
        "reverse.py:14: shared write of 2 bytes per thread: 16 requests, 16 wavefronts (ideal 16), at worst 1-way"
    )


def test_other_orders(emit: Emit) -> None:
    kernel = load_kernel(
        emit("reverse"), device="cpu", check=True, schedules=("shuffle",), landing="random", preempt=0.1, seed=7
    )
    np.testing.assert_array_equal(kernel(numbers(700, BF16)), reversed_blocks(numbers(700, BF16)))
    assert str(kernel.report) == "reverse: no findings (shuffle)"


def test_results_that_hang_on_the_schedule_are_named(emit: Emit) -> None:
    folder = emit("reverse", ("tl::sync_threads();", "                  "))
    schedules = ("round-robin", "reverse")
    kernel = load_kernel(folder, device="cpu", check=True, schedules=schedules, on_finding="report")
    kernel(numbers(512, BF16))
    assert kernel.report is not None and kernel.report.unstable == ("B",)
    assert str(kernel.report).endswith("(round-robin, reverse); results differ between schedules: B")


def test_a_deadlock_ends_the_launch(emit: Emit) -> None:
    folder = emit("reverse", ("tl::sync_threads();", "if (tl::thread() < 64) tl::barrier_sync(1, 256);"))
    with pytest.raises(LaunchError) as raised:
        load_kernel(folder, device="cpu")(numbers(256, BF16))
    assert raised.value.name.startswith("TL_LAUNCH_FAILED") and "deadlock" in str(raised.value)
    with pytest.raises(CheckError, match="deadlock"):
        load_kernel(folder, device="cpu", check=True)(numbers(256, BF16))


def test_threads_may_call_at_once(emit: Emit) -> None:
    plain = load_kernel(emit("vector_add"), device="cpu")
    checked = load_kernel(emit("reverse"), device="cpu", check=True)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for count in range(seed, 2000, 300):
                a = numbers(count)
                np.testing.assert_array_equal(plain(a, a.copy()), 2 * a)
                half = numbers(count % 600, BF16)
                np.testing.assert_array_equal(checked(half), reversed_blocks(half))
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_several_workers(emit: Emit) -> None:
    a = numbers(9000)
    kernel = load_kernel(emit("vector_add"), device="cpu", workers=2)
    np.testing.assert_array_equal(kernel(a, a.copy()), 2 * a)


def test_the_engine_is_built_once() -> None:
    assert build_engine() == build_engine() == load_engine().path


def test_memory_is_copied_in_and_freed() -> None:
    engine, content = load_engine(), np.arange(64, dtype=np.uint8)
    with engine.turn(EngineOptions()), engine.memory(64, content.__array_interface__["data"][0]) as address:
        import ctypes

        assert ctypes.string_at(address, 64) == content.tobytes()
    with engine.turn(EngineOptions()), pytest.raises(MemoryError, match="heap"), engine.memory(1 << 50, None):
        pass


def test_what_is_loaded_follows_the_files_that_the_source_imports(tmp_path: Path) -> None:
    (tmp_path / "doubled.py").write_text(
        "import tilelang.language as T\n"
        "from sizes import BLOCK\n\n"
        "N = T.dynamic('N')\n\n"
        "@T.prim_func\n"
        "def doubled(X: T.Tensor((N,), 'float32'), Y: T.Tensor((N,), 'float32')):\n"
        "    with T.Kernel(T.ceildiv(N, BLOCK), threads=128) as bx:\n"
        "        for i in T.Parallel(BLOCK):\n"
        "            Y[bx * BLOCK + i] = X[bx * BLOCK + i] * 2\n",
        encoding="utf-8",
    )
    for block in (256, 128, 256):
        (tmp_path / "sizes.py").write_text(f"BLOCK = {block}\n", encoding="utf-8")
        kernel = tile2cu.load(tmp_path / "doubled.py", device="cpu")
        assert f"BLOCK = {block}" in kernel.source
        y = np.empty(300, np.float32)
        kernel(np.ones(300, np.float32), y)
        np.testing.assert_array_equal(y, 2)
