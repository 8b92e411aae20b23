"""What a review page states of a run: accesses by Python line, findings, styles as tabs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile2cu.cli import main
from tile2cu.review.execution import executed
from tile2cu_runtime.report import Finding, GlobalAccess, Place, Report, SharedAccess

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def place(line: int) -> Place:
    return Place(file="kernel.cu", line=100 + line, python_file="kernel.py", python_line=line)


def shared(line: int, wavefronts: int, ideal: int) -> SharedAccess:
    ways = wavefronts // ideal
    return SharedAccess(
        place=place(line), access="read", bytes=16, requests=8, wavefronts=wavefronts, ideal=ideal, worst_ways=ways
    )


def test_accesses_of_one_line_and_kind_are_added_up() -> None:
    one = GlobalAccess(place=place(7), access="read", bytes=16, requests=4, sectors=64, ideal=64)
    report = Report(kernel="k", shared=(shared(9, 64, 32), shared(9, 32, 32)), global_memory=(one,))
    found = executed(report, {"M": 128}).accesses
    assert [(each.line, each.memory, each.requests, each.units, each.ideal) for each in found] == [
        (7, "global", 4, 64, 64),
        (9, "shared", 16, 96, 64),
    ]
    assert found[0].excess == 1 and found[0].note == ""
    assert found[1].excess == 1.5 and found[1].note == "at worst 2-way bank conflicts"


def test_findings_and_sizes() -> None:
    finding = Finding(kind="race", message="two threads write", count=3, places=(place(4),))
    run = executed(Report(kernel="k", findings=(finding,), schedules=("round-robin",)), {"M": 1, "N": 2})
    assert run.sizes == "M = 1, N = 2" and run.schedules == "round-robin"
    assert "two threads write" in run.findings[0]
    assert [len(check.findings) for check in run.checks] == [1, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("race between blocks", "races"),
        ("barrier count mismatch", "barriers"),
        ("missing fence.proxy.async", "asynchronous"),
        ("read of in-flight async copy", "asynchronous"),
        ("misaligned ldmatrix", "warp collectives"),
        ("global out-of-bounds", "accesses out of bounds"),
        ("uninitialised shared read", "reads of uninitialised"),
        ("assertion failed", "the launch"),
    ],
)
def test_a_finding_belongs_to_a_check(kind: str, check: str) -> None:
    finding = Finding(kind=kind, message="", count=1, places=(place(4),))
    (found,) = (each for each in executed(Report(kernel="k", findings=(finding,)), {}).checks if each.findings)
    assert found.name.startswith(check)


@pytest.mark.needs("g++")
def test_the_page_of_a_run(tmp_path: Path) -> None:
    page = tmp_path / "review.html"
    sizes = ["--size", "M=128", "--size", "N=128", "--size", "K=32"]
    command = ["review", str(EXAMPLES / "gemm_relu.py"), *sizes, "--run", "--no-compile", "-o", str(page)]
    assert main(command) == 0
    text = page.read_text(encoding="utf-8")
    assert "no findings" in text and "M = 128, N = 128, K = 32" in text
    assert '<td>shared</td><td>read</td><td class="number">16</td>' in text
    assert "shared read, 16 bytes: 1.00 x wavefronts" in text  # at its line


def test_styles_have_tabs(tmp_path: Path) -> None:
    page = tmp_path / "review.html"
    command = ["review", str(EXAMPLES / "gemm_relu.py"), "--style", "tl", "--style", "cute", "--no-compile"]
    assert main([*command, "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.count('role="tab" id=') == 2 and ">tl</button>" in text and ">cute</button>" in text
    assert "<code>--run</code>" in text


def test_a_gallery_links_the_pages_of_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from gallery import Page, gallery, pages_of_examples

    wrong = tmp_path / "wrong.py"
    wrong.write_text("x = 1\n", encoding="utf-8")
    (page,) = [each for each in pages_of_examples(["cuda:sm_80"]) if each.file.name == "vector_add.py"]
    failed = gallery(tmp_path / "pages", [page, Page(file=wrong, target="cuda:sm_80", bindings={})])
    assert [each.file for each in failed] == [wrong] and "T2C-F003" in capsys.readouterr().err
    index = (tmp_path / "pages" / "index.md").read_text(encoding="utf-8")
    assert "(vector_add.sm_80.html)" in index and "wrong" not in index
    assert (tmp_path / "pages" / "vector_add.sm_80.html").is_file()


def test_tiles_may_be_the_model_s(tmp_path: Path) -> None:
    page = tmp_path / "review.html"
    sizes = ["-D", "M=512", "-D", "N=512", "-D", "K=256"]
    assert main(["review", str(EXAMPLES / "gemm_relu.py"), "--auto", *sizes, "--no-compile", "-o", str(page)]) == 0
    assert "M = 512" in page.read_text(encoding="utf-8")
