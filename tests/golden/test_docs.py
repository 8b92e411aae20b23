"""The pages for people name what is there: files, sections, rules, and lines of a kernel and its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tile2cu.rules import REWRITES, RULES

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
