"""`tile2cu bench` without a GPU: counts and no times, the work counted from programs, and what is wrong with a peer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tile2cu import loading
from tile2cu.analysis.work import mma_flops
from tile2cu.cli import bench, main
from tile2cu.core.errors import Tile2CuError
from tile2cu.files import read_python
from tile2cu.frontend import programs
from tile2cu.targets import find

ROOT = Path(__file__).resolve().parents[3]
GEMM = ROOT / "examples" / "gemm_relu.py"
SIZES = {"M": 256, "N": 512, "K": 64}
HEAD = """\
import tilelang.language as T


def factory(N):
    @T.prim_func
    def kernel(A: T.Tensor((N, 64), "float16"), L: T.Tensor((N,), "int32"), C: T.Tensor((N, 64), "float32")):
        with T.Kernel(T.ceildiv(N, 64), threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
"""
TAIL = """\
            T.copy(c, C[bx * 64, 0])

    return kernel
"""
ONE = 2 * 64**3


def counted(path: Path, sizes: dict[str, int], **bindings: object) -> int | None:
    (program,) = programs(path, read_python(path), kernel=None, bindings=bindings, target=find("cuda:sm_80"))
    return mma_flops(program, sizes)


def kernel(folder: Path, *lines: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(HEAD + "".join(f"            {line}\n" for line in lines) + TAIL, encoding="utf-8")
    return path


def test_a_gemm_has_2_m_n_k_operations() -> None:
    assert counted(GEMM, {"M": 256, "N": 512, "K": 64}) == 2 * 256 * 512 * 64
    assert counted(GEMM, {}, M=1024, N=1024, K=1024) == 2 * 1024**3


def test_rows_outside_of_a_tensor_are_multiplied_too() -> None:
    assert counted(GEMM, {"M": 1, "N": 512, "K": 64}, block_M=128) == 2 * 128 * 512 * 64


def test_causal_attention_has_about_half_of_the_work() -> None:
    path, sizes = ROOT / "examples" / "attention.py", {"batch": 2, "heads": 3, "seq_len": 512}
    one = 2 * 64 * 64 * 64  # a block of 64 queries and one of 64 keys, for each of two GEMMs
    assert counted(path, sizes, dim=64) == 2 * 3 * 8 * 8 * 2 * one
    assert counted(path, sizes, dim=64, is_causal=True) == 2 * 3 * (8 * 9 // 2) * 2 * one


def test_a_size_that_is_missing_leaves_the_work_unknown() -> None:
    assert counted(GEMM, {"M": 256, "N": 512}) is None


@pytest.mark.parametrize(
    ("lines", "gemms"),
    [
        (["T.gemm(a, a, c)"], 4),
        (["for k in T.serial(bx + 1):", "    T.gemm(a, a, c)"], 1 + 2 + 3 + 4),
        (["for i in T.serial(3):", "    for k in T.serial(i):", "        T.gemm(a, a, c)"], 4 * 3),
        (["if bx < 3:", "    T.gemm(a, a, c)"], 3),
        (["for k in T.serial(N // 64):", "    if k <= bx:", "        T.gemm(a, a, c)"], 10),
        (["for k in T.serial(L[bx]):", "    T.gemm(a, a, c)"], None),
        (["n = T.min(bx + 1, 2)", "m = n * 2", "for k in T.serial(m):", "    T.gemm(a, a, c)"], 2 + 4 + 4 + 4),
        (["n = L[bx]", "for k in T.serial(n):", "    T.gemm(a, a, c)"], None),
        (["T.fill(c, 1.0)"], 0),
    ],
)
def test_loops_and_branches_decide_the_work(lines: list[str], gemms: int | None, tmp_path: Path) -> None:
    path = kernel(tmp_path, "T.copy(A[bx * 64, 0], a)", *lines)
    assert counted(path, {"N": 256}) == (None if gemms is None else gemms * ONE)


@pytest.fixture
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads of emitted kernels that build nothing: counts need no library."""
    from tile2cu_runtime.load import manifest_of

    class Unbuilt:
        device = "cpu"
        mma_flops: Callable[..., Any] | None = None

        def __init__(self, path: Path, **_: Any) -> None:
            self.manifest = manifest_of(path)

    monkeypatch.setattr(loading, "load_kernel", Unbuilt)


def sized(sizes: dict[str, int]) -> list[str]:
    return [word for name, value in sizes.items() for word in ("--size", f"{name}={value}")]


@pytest.mark.usefixtures("no_build")
def test_the_cpu_engine_gives_counts_and_no_times(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", str(GEMM), "--device", "cpu", *sized(SIZES), "--peer", "torch:matmul"]
    assert main([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["kernel"], data["device"], data["gpu"]) == ("gemm_relu", "cpu", "")
    assert data["work"]["mma_flops"] == 2 * 256 * 512 * 64
    assert data["work"]["bytes"] == {"A": 2 * 256 * 64, "B": 2 * 64 * 512, "C": 2 * 256 * 512}
    assert data["measured"] == [] and data["roofline"] is None
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "16,777,216 operations" in text and "no times" in text and " us" not in text


@pytest.mark.usefixtures("no_build")
def test_flops_can_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(GEMM), *sized(SIZES), "--flops", "1000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["work"]["mma_flops"] == 1000


@pytest.mark.usefixtures("no_build")
def test_an_emitted_kernel_has_no_program_to_count(capsys: pytest.CaptureFixture[str]) -> None:
    emitted = ROOT / "emitted" / "cuda" / "sm_80" / "gemm_relu.json"
    assert main(["bench", str(emitted), *sized(SIZES)]) == 0
    assert "not counted" in capsys.readouterr().out


@pytest.mark.usefixtures("no_build")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--size", "M=1"], "T2C-R105"),
        ([*sized(SIZES), "--size", "P=1"], "T2C-R100"),
        ([*sized(SIZES), "--peer", "torch"], "T2C-C002"),
        ([*sized(SIZES), "--peer", "nothing.py"], "T2C-C001"),
        ([*sized(SIZES), "--rounds", "0"], "T2C-R030"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(GEMM), *arguments]) == 1
    assert f"error[{code}]" in capsys.readouterr().err


def test_a_peer_is_a_function_of_a_module() -> None:
    assert bench._peers_of("operator:add")(1, 2)["operator:add"]() == 3
    assert bench._peers_of("os:path.join")("a", "b")["os:path.join"]() == "a/b"


def test_a_peer_is_a_file_with_peers(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def peers(a, b):\n    return {'sum': lambda: a + b}\n", encoding="utf-8")
    assert bench._peers_of(str(file))(1, 2)["sum"]() == 3


@pytest.mark.parametrize(
    ("peer", "message"),
    [("operator:nothing", "there is no function `nothing`"), ("no_such_module:f", "pip install no_such_module")],
)
def test_a_peer_that_is_not_there_is_an_error(peer: str, message: str) -> None:
    with pytest.raises(Tile2CuError) as caught:
        bench._peers_of(peer)(1)
    assert message in caught.value.render()


def test_a_file_without_peers_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    with pytest.raises(Tile2CuError, match="there is no function `peers`"):
        bench._peers_of(str(tmp_path / "empty.py"))(1)
