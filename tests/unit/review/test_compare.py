"""`tile2cu review --against` and `--against-target`: what changed, and nothing that did not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # pytest imports tests without their folder

from html_page import Element, parsed  # noqa: E402

from tile2cu.api import one_resolved_kernel  # noqa: E402
from tile2cu.cli import main  # noqa: E402
from tile2cu.core.origin import EmitOptions, Tool  # noqa: E402
from tile2cu.review.compare import compared  # noqa: E402
from tile2cu.review.kernel import Kernel, reviewed  # noqa: E402
from tile2cu.targets import find  # noqa: E402

GEMM = Path(__file__).resolve().parents[3] / "examples" / "gemm_relu.py"


def kernel(target: str = "cuda:sm_80", text: str | None = None) -> Kernel:
    launches = one_resolved_kernel(GEMM, None, target=find(target), bindings={}, text=text)
    return reviewed(launches, label="", tool=Tool(version="test"), options=EmitOptions())


def test_equal_kernels_have_no_difference() -> None:
    found = compared(kernel(), kernel(), label="", before="a", after="b")
    assert (found.changes, found.figures, found.emitted, found.python) == ((), (), (), ())


def test_a_line_above_moves_no_decision() -> None:
    """Lines are renumbered; what is decided about them is the same."""
    text = GEMM.read_text(encoding="utf-8").replace("import tilelang\n", "import tilelang\n\n\n", 1)
    found = compared(kernel(), kernel(text=text), label="", before="a", after="b")
    assert found.changes == () and found.figures == ()
    assert [line for line in found.python if line.startswith("+") and line != "+++ b"] == ["+", "+"]
    (changed,) = (line for line in found.emitted if line.startswith("+") and line != "+++ b")
    assert "sha256" in changed  # of the Python file


def test_decisions_and_figures_that_changed() -> None:
    text = GEMM.read_text(encoding="utf-8").replace("num_stages=3", "num_stages=2", 1)
    found = compared(kernel(), kernel(text=text), label="", before="a", after="b")
    changes = {change.place: (change.before, change.after) for change in found.changes}
    assert changes["A_shared"] == (("stages: 3  [pipeline.loop.cp-async]",), ("stages: 2  [pipeline.loop.cp-async]",))
    assert "C_local" not in changes
    shared = next(each for each in found.figures if each.name == "shared memory")
    assert (shared.before.partition(" ")[0], shared.after.partition(" ")[0]) == ("49,152", "32,768")
    assert shared.change == "-16,384 bytes (-33%)"
    assert "-constexpr int num_stages = 3;" in found.emitted and "+constexpr int num_stages = 2;" in found.emitted


def test_a_statement_that_is_gone() -> None:
    text = GEMM.read_text(encoding="utf-8").replace("T.copy(A[by", "T.copy(  A[by", 1)
    found = compared(kernel(), kernel(text=text), label="", before="a", after="b")
    changes = {change.place: (change.before, change.after) for change in found.changes}
    stated = ("tl::copy_async  [select.copy.cp-async]",)
    assert changes["T.copy(A[by * block_M, ko * block_K], A_shared)"] == (stated, ())
    assert changes["T.copy(  A[by * block_M, ko * block_K], A_shared)"] == ((), stated)


def git(folder: Path, *arguments: str) -> None:
    name = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(folder), *name, *arguments], check=True, capture_output=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The example in a repository, with one stage less than at HEAD."""
    git(tmp_path, "init")
    path = tmp_path / "gemm_relu.py"
    text = GEMM.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    git(tmp_path, "add", "gemm_relu.py")
    git(tmp_path, "commit", "-m", "first")
    path.write_text(text.replace("num_stages=3", "num_stages=2", 1), encoding="utf-8")
    return path


def review(file: Path, *options: str) -> Element:
    place = file.with_name("page.html")
    assert main(["review", str(file), *options, "--no-compile", "-o", str(place)]) == 0
    return parsed(place.read_text(encoding="utf-8"))


def test_against_a_revision(file: Path) -> None:
    root = review(file, "--against", "HEAD")
    assert [tab.text for tab in root.all("button", role="tab")] == ["gemm_relu", "gemm_relu since HEAD"]
    panel = root.by_id("c1")
    assert panel.attributes["role"] == root.by_id("k1").attributes["role"] == "tabpanel"
    assert "stages: 3" in panel.text and "stages: 2" in panel.text
    removed, added = (panel.all("span", class_=kind) for kind in ("del", "add"))
    assert any("num_stages=3" in line.text for line in removed) and any("num_stages=2" in line.text for line in added)


def test_imported_files_are_those_of_the_revision(tmp_path: Path) -> None:
    git(tmp_path, "init")
    text = GEMM.read_text(encoding="utf-8")
    assert text.count("num_stages=3") == 1
    path, sizes = tmp_path / "gemm_relu.py", tmp_path / "sizes.py"
    path.write_text(
        text.replace("import tilelang\n", "import tilelang\nfrom sizes import STAGES\n", 1).replace(
            "num_stages=3", "num_stages=STAGES"
        ),
        encoding="utf-8",
    )
    sizes.write_text("STAGES = 3\n", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    sizes.write_text("STAGES = 2\n", encoding="utf-8")
    panel = review(path, "--against", "HEAD").by_id("c1")
    assert "stages: 3" in panel.text and "stages: 2" in panel.text
    assert "No difference." in panel.text  # of the file itself


def test_against_another_target(file: Path) -> None:
    root = review(file, "--target", "cuda:sm_90a", "--against-target", "cuda:sm_80")
    tabs = [tab.text for tab in root.all("button", role="tab")]
    assert tabs == ["cuda:sm_90a", "cuda:sm_80", "cuda:sm_90a against cuda:sm_80"]
    panel = root.by_id("c1")
    assert "wgmma" in panel.text and "mma.m16n8k16" in panel.text
    assert "No difference." in panel.text  # of the Python file


@pytest.mark.parametrize("revision", ["no_such_branch", "--output=x"])
def test_a_revision_that_git_does_not_have(file: Path, revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = file.with_name("page.html")
    assert main(["review", str(file), f"--against={revision}", "--no-compile", "-o", str(place)]) == 1
    assert f"git has no `gemm_relu.py` in `{revision}`" in capsys.readouterr().err
    assert not place.exists()
