"""device="sim": an emitted kernel is loaded, called and checked as on any other device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.amdgcn.chips import require_compiler
from tests.amdgcn.emitted import ROOT, portable
from tests.host.test_launches import SPLIT
from tile2cu_runtime import CheckError, DeviceError, Kernel, load_kernel
from tile2cu_runtime.compile import run_compiler
from tile2cu_runtime.hip import CODE_OBJECT, precompiled_headers, simulator_build

EXAMPLES = ROOT / "examples"
RNG = np.random.default_rng(3)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def vector_add(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    folder = tmp_path_factory.mktemp("vector_add")
    return load_kernel(portable("vector_add", "hip:gfx942", folder), device="sim", check=True, statistics=True)


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 5000])
def test_vector_add(vector_add: Kernel, n: int) -> None:
    a, b = numbers(n), numbers(n)
    np.testing.assert_array_equal(vector_add(a, b), a + b)
    assert vector_add.report is not None and vector_add.report.is_clean
    assert [cost.waves for cost in vector_add.costs] == [4 * -(-n // 1024)] * (n > 0)


def test_a_given_output_is_written_and_inputs_are_not(vector_add: Kernel) -> None:
    a, b, c = numbers(100), numbers(100), numbers(100)
    a.flags.writeable = False
    before = b.copy()
    assert vector_add(a, b, c) is None
    np.testing.assert_array_equal(c, a + b)
    np.testing.assert_array_equal(b, before)


@pytest.mark.nightly  # for each change: test_run.py
def test_softmax_is_the_engines(tmp_path: Path) -> None:
    """Shuffles, reductions and exponentials, of ragged rows: within rounding of the same text on the CPU engine."""
    manifest = portable("row_softmax", "hip:gfx942", tmp_path)
    x = numbers(5, 1000)
    simulated = load_kernel(manifest, device="sim", check=True)
    y = simulated(x)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(y, load_kernel(manifest, device="cpu")(x), rtol=1e-5, atol=1e-9)
    assert simulated.report is not None and simulated.report.is_clean


def test_a_fault_is_at_its_python_line(tmp_path: Path) -> None:
    """A bound that is 4 elements too far: the last thread reads behind A, and the report has the line of the loop."""
    text = (ROOT / "emitted/cuda/sm_80/vector_add.cu").read_text(encoding="utf-8")
    wrong = text.replace("A_data, tl::predicated(N)", "A_data, tl::predicated(N + 4)")
    assert wrong != text
    manifest = portable("vector_add", "hip:gfx942", tmp_path, text=wrong)
    kernel = load_kernel(manifest, device="sim", check=True, source=EXAMPLES / "vector_add.py")
    a, b = numbers(1000), numbers(1000)
    with pytest.raises(CheckError) as raised:
        kernel(a, b)
    (finding,) = raised.value.report.findings
    assert finding.kind == "out-of-bounds" and "of `A`, which has 4000" in finding.message
    assert "A[" in finding.places[0].python_text and finding.places[0].file == "vector_add.hip"


def test_launches_of_one_call_share_the_workspace(tmp_path: Path) -> None:
    """Two kernels of one function; the second reads what the first one left in the workspace."""
    path = tmp_path / "total.py"
    path.write_text(SPLIT.format(between=""), encoding="utf-8")
    kernel = tile2cu.load(path, target="hip:gfx942", device="sim", check=True)
    a = RNG.integers(-9, 9, (130, 65)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), a.sum(axis=1))
    assert len(kernel.costs) == 2


def test_headers_are_precompiled_once_for_launchers_and_for_kernels(tmp_path: Path) -> None:
    def commands(text_file: str, architecture: str) -> list[tuple[str, ...]]:
        build = simulator_build(text_file, architecture=architecture)
        assert not precompiled_headers(("ld.lld-19",), build.identity)
        return [(*each, *precompiled_headers(each, build.identity)) for each in (*build.before, build.compile)]

    (tmp_path / "asks.hip").write_text("static_assert(sizeof(tl::half) == 2);\n", encoding="utf-8")
    asks = commands("asks.hip", "gfx942")
    for command, other, older in zip(
        asks, commands("other.hip", "gfx942"), commands("asks.hip", "gfx90a"), strict=True
    ):
        run_compiler(command, tmp_path, "a source without #include")
        assert command[-1] == other[-1] != older[-1]
    assert (tmp_path / CODE_OBJECT).is_file() and len({command[-1] for command in asks}) == len(asks) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_a_precompiled_header_changes_no_instruction(chip: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    require_compiler(chip, request)
    text = portable("row_softmax", f"hip:{chip}", tmp_path).with_suffix(".hip").name
    build, code = simulator_build(text, architecture=chip), []
    for is_precompiled in (False, True):
        for step in build.before:
            headers = precompiled_headers(step, build.identity) if is_precompiled else ()
            run_compiler((*step, *headers), tmp_path, "the kernel")
        code.append((tmp_path / CODE_OBJECT).read_bytes())
    assert code[0] == code[1]


def test_texts_for_the_other_vendor_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match='is for cuda:sm_80; device="sim" runs kernels for hip'):
        load_kernel(ROOT / "emitted/cuda/sm_80/vector_add.json", device="sim")
    with pytest.raises(DeviceError, match='is for hip:gfx942; device="cuda" runs kernels for cuda'):
        load_kernel(portable("vector_add", "hip:gfx942", tmp_path), device="cuda")


def test_hip_needs_an_amd_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = portable("vector_add", "hip:gfx942", tmp_path)
    monkeypatch.setattr("tile2cu_runtime.device.amd_architectures", lambda: ())
    with pytest.raises(DeviceError, match="no AMD GPU") as raised:
        load_kernel(manifest, device="hip")
    assert raised.value.code == "T2C-R020" and 'device="sim"' in raised.value.help
    monkeypatch.setattr("tile2cu_runtime.device.amd_architectures", lambda: ("gfx90a",))
    with pytest.raises(DeviceError, match="the GPU here is gfx90a"):
        load_kernel(manifest, device="hip")


@pytest.mark.nightly  # for each change, all that runs for gfx950
def test_gfx950_is_built_by_the_ziglang_wheel(ziglang: str, tmp_path: Path) -> None:
    kernel = load_kernel(portable("vector_add", "hip:gfx950", tmp_path), device="sim", check=True)
    a, b = numbers(3000), numbers(3000)
    np.testing.assert_array_equal(kernel(a, b), a + b)
