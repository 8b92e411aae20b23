"""`tile2cu run` on the CPU engine: what it prints, writes and answers."""

import json
from pathlib import Path

import numpy as np
import pytest

from tile2cu.cli import main

pytestmark = pytest.mark.binding

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GEMM = str(EXAMPLES / "gemm_relu.py")
ADD = str(EXAMPLES / "vector_add.py")
SIZES = ["--size", "M=200", "--size", "N=96", "--size", "K=64"]


@pytest.mark.nightly
def test_a_product_is_what_numpy_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, report = tmp_path / "out.npz", tmp_path / "report.json"
    assert main(["run", GEMM, *SIZES, "--stats", "--save", str(saved), "--json", str(report)]) == 0
    tensors = dict(np.load(saved))
    expected = np.maximum(tensors["A"].astype(np.float64) @ tensors["B"].astype(np.float64), 0)
    assert np.abs(tensors["C"] - expected).max() <= 1e-3 * expected.max()
    data = json.loads(report.read_text(encoding="utf-8"))
    assert (data["kernel"], data["device"], data["findings"]) == ("gemm_relu", "cpu", [])
    assert data["numbers"] == {"M": 200, "N": 96, "K": 64}
    (line,) = (tensor for tensor in data["tensors"] if tensor["name"] == "C")
    assert line["shape"] == [200, 96] and line["largest"] == float(tensors["C"].max()) and line["not_finite"] == 0
    assert {access["access"] for access in data["shared"]} == {"read", "write"}
    printed = capsys.readouterr().out
    assert "gemm_relu for cuda:sm_80 on cpu, seed 0, M = 200, N = 96, K = 64" in printed
    assert line["sha256"][:12] in printed and "no findings" in printed and "wavefronts" in printed


def test_one_seed_gives_one_answer_and_two_give_two(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for seed in (1, 1, 2):
        assert main(["run", ADD, "--size", "N=100", "--no-check", "--seed", str(seed)]) == 0
        printed.append(capsys.readouterr().out.partition("\n")[2])
    assert printed[0] == printed[1] != printed[2]


def test_given_tensors_tell_their_sizes(tmp_path: Path) -> None:
    a, b = np.arange(10, dtype=np.float32), np.full(10, 0.5, np.float32)
    np.savez(tmp_path / "in.npz", A=a, B=b)
    assert main(["run", ADD, "--input", str(tmp_path / "in.npz"), "--save", str(tmp_path / "out.npz")]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["C"], a + b)


def test_an_emitted_kernel_runs_without_its_python(tmp_path: Path) -> None:
    assert main([ADD, "-o", str(tmp_path)]) == 0
    assert main(["run", str(tmp_path / "vector_add.cu"), "--size", "N=5"]) == 0


RACE = """\
import tilelang.language as T


def race(N=128):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            for i in T.Parallel(N):
                A[i] = bx

    return body
"""


def test_findings_are_an_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two blocks write the same elements."""
    path = tmp_path / "race.py"
    path.write_text(RACE, encoding="utf-8")
    assert main(["run", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "error[" in printed and "race.py:9" in printed and "1 finding" in printed
    assert main(["run", str(path), "--no-check"]) == 0


REFERENCE = """\
import numpy as np


def product(A, B):
    return np.maximum(A @ B, 0)


def wrong(A, B):
    made = product(A, B)
    made[3, 5] = 99
    return made


def two(A, B):
    return A, B
"""
IN_TORCH = """\
import torch


def product(A, B):
    assert A.dtype is torch.float16
    return torch.relu(A.double() @ B.double())
"""


@pytest.fixture
def reference(tmp_path: Path) -> str:
    (tmp_path / "ref.py").write_text(REFERENCE, encoding="utf-8")
    (tmp_path / "in_torch.py").write_text(IN_TORCH, encoding="utf-8")
    return str(tmp_path / "ref.py")


def test_results_are_compared_with_a_reference(
    reference: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", GEMM, *SIZES, "--reference", f"{reference}:product"]) == 0
    assert "  C            agrees " in capsys.readouterr().out
    report = tmp_path / "report.json"
    assert main(["run", GEMM, *SIZES, "--no-check", "--reference", f"{reference}:wrong", "--json", str(report)]) == 1
    assert "  C            1 of 19200 differ " in (printed := capsys.readouterr().out)
    assert "at [3, 5]: " in printed and "expected 99" in printed
    (line,) = json.loads(report.read_text(encoding="utf-8"))["reference"]
    assert line["worst"] == [3, 5] and line["expected"] == 99 and not line["agrees"]
    given = ["run", GEMM, *SIZES, "--no-check", "--reference", f"{reference}:wrong"]
    assert main([*given, "--atol", "100"]) == 0
    assert main([*given, "--rtol", "1e-3"]) == 1


def test_a_reference_in_torch_gets_tensors(reference: str) -> None:
    pytest.importorskip("torch")
    assert (
        main(["run", GEMM, *SIZES, "--no-check", "--reference", f"{Path(reference).parent}/in_torch.py:product"]) == 0
    )


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("two", "error[T2C-R120]: the reference returns 2 results, and the kernel writes C"),
        ("nothing", "there is no function `nothing`"),
    ],
)
def test_references_that_are_none(function: str, said: str, reference: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", GEMM, *SIZES, "--no-check", "--reference", f"{reference}:{function}"]) == 1
    assert said in capsys.readouterr().err


def test_what_is_not_checked_has_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", ADD, "--size", "N=100", "--no-check", "--stats"]) == 0
    printed = capsys.readouterr().out
    assert "findings" not in printed and "vector_add: not checked" in printed and "sectors" in printed


def test_columns_have_headings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", ADD, "--size", "N=100", "--no-check"]) == 0
    heading, line = capsys.readouterr().out.splitlines()[1:3]
    assert [heading.index(word) for word in ("tensor", "access", "type", "shape")] == [
        line.index(word) for word in ("A ", "read", "float32", "(100,)")
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([GEMM, "--size", "M=8"], "the size `N` is not given\n  = help: give --size N=... --size K=..."),
        ([GEMM, *SIZES, "--size", "Q=8"], "gemm_relu has no size `Q`; it has M, N, K"),
        ([GEMM, *SIZES, "--size", "block_M=8"], "block_M is 128 in this kernel, at compile time: -D block_M=..."),
        ([GEMM, "--size", "M"], "`--size M` is not of the form NAME=NUMBER"),
        ([GEMM, "--size", "M=x"], "`--size M=x` is not of the form NAME=NUMBER"),
        ([GEMM, *SIZES, "--input", "nothing.npz"], "cannot read `nothing.npz`"),
        ([ADD, "--size", "N=4", "--save", "no/such/folder.npz"], "cannot write `no/such/folder.npz`"),
        ([GEMM, *SIZES, "--reference", "ref.py"], "`--reference ref.py` is not of the form FILE.py:FUNCTION"),
        ([GEMM, *SIZES, "--reference", "no.py:f"], "cannot read `no.py`"),
        ([GEMM, *SIZES, "--atol", "1"], "--rtol and --atol need --reference"),
        ([GEMM, *SIZES, "--target", "cuda:sm_80", "--device", "sim"], 'device="sim" runs kernels for hip'),
    ],
)
def test_wrong_calls(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *arguments]) == 1
    assert said in capsys.readouterr().err
