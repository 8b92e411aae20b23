"""The pages for people name what is there: files, sections, rules, and lines of a kernel and its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.cli import main
from tile2cu.rules import RULES
from tile2cu.rules.rewrites import REWRITES
from tile2cu.targets import find

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/lab/*.md"), *ROOT.glob("benchmarks/*.md")]
)
AREAS = {rule.id.partition(".")[0] for rule in RULES} | {"rewrite"}
CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = {"python": "examples/gemm_relu.py", "cpp": "emitted/cuda/sm_90a/gemm_relu.cu"}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def sections(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", CODE.sub("", page.read_text("utf-8")))
    for link in re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", text, re.MULTILINE):
        path, _, section = "".join(link).partition("#")
        if not path.startswith("http"):
            target = page.parent / path if path else page
            assert target.exists(), path
            assert not section or section in sections(target), section


@each_page
def test_lines_of_prose_fit_the_page(page: Path) -> None:
    lines = CODE.sub("", page.read_text("utf-8")).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|") and "](http" not in line] == []


@each_page
def test_rules_that_are_named_are_there(page: Path) -> None:
    named = set(re.findall(r"`([a-z]+\.[a-z0-9-]+\.[a-z0-9-]+)`", page.read_text("utf-8")))
    rules = {name for name in named if name.partition(".")[0] in AREAS}
    assert rules - {rule.id for rule in RULES} - set(REWRITES) == set()


def test_the_example_for_hopper_is_the_kernels_text() -> None:
    """Comments are shortened there, and lines left out."""
    for language, shown in CODE.findall((ROOT / "docs/hopper.md").read_text("utf-8"))[:2]:
        source = " ".join((ROOT / SHOWN[language]).read_text(encoding="utf-8").split())
        lines = [line.partition("  //")[0].strip() for line in shown.splitlines()]
        assert [line for line in lines if not line.startswith("//") and line not in source] == []


def test_excerpts_of_the_reading_page_are_of_the_kernel() -> None:
    source = (ROOT / "emitted/cuda/sm_80/gemm_relu.cu").read_text("utf-8")
    excerpts = [text for _, text in CODE.findall((ROOT / "docs/reading.md").read_text("utf-8"))]
    assert len(excerpts) > 4 and [text for text in excerpts if text not in source] == []


def test_the_first_kernel_is_emitted_without_warnings(tmp_path: Path) -> None:
    (_, text), *_ = CODE.findall((ROOT / "docs/first_kernel.md").read_text("utf-8"))
    path = tmp_path / "scale.py"
    path.write_text(text, encoding="utf-8")
    (emitted,) = emit_text(path, kernel=None, target=find("cuda:sm_80"), bindings={})
    assert emitted.warnings == () and "// scale: Y[m, n] = 2 * X[m, n]" in emitted.source


@pytest.mark.parametrize(("tile", "window"), [("C_local", "16x16"), ("A_shared", "8x32")])
def test_pictures_are_current(tile: str, window: str, tmp_path: Path, update_emitted: bool) -> None:
    picture, drawn = ROOT / f"docs/images/{tile}.svg", tmp_path / "drawn.svg"
    sizes = ["-D", "block_M=32", "-D", "block_N=32", "-D", "threads=32"]
    kernel = str(ROOT / "examples/gemm_relu.py")
    assert main(["layout", kernel, "--tile", tile, "--window", window, *sizes, "-o", str(drawn)]) == 0
    if update_emitted:
        picture.write_text(drawn.read_text("utf-8"), encoding="utf-8")
    assert picture.read_text("utf-8") == drawn.read_text("utf-8"), "run: pytest tests/golden --update-emitted"


def test_a_release_has_at_most_60_lines() -> None:
    """As CHANGELOG.md states."""
    _, *releases = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")
    assert releases and all(len(release.strip().splitlines()) <= 60 for release in releases)
