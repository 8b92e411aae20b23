"""`tile2cu review`: one file that has all decisions, whose lines lead to each other, and that all can read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # pytest imports tests without their folder

from html_page import Element, parsed  # noqa: E402

from tile2cu.api import one_resolved_kernel  # noqa: E402
from tile2cu.cli import main  # noqa: E402
from tile2cu.core.origin import EmitOptions, Tool  # noqa: E402
from tile2cu.explain import in_words  # noqa: E402
from tile2cu.review.code import origins  # noqa: E402
from tile2cu.review.kernel import Kernel, reviewed  # noqa: E402
from tile2cu.review.page import page  # noqa: E402
from tile2cu.targets import find  # noqa: E402
from tile2cu_runtime import resources  # noqa: E402
from tile2cu_runtime.errors import CompileError  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CASES = {
    "gemm_relu": "cuda:sm_80",
    "attention": "cuda:sm_90a",
    "row_softmax": "hip:gfx942",
    "flash_decoding": "cuda:sm_80",  # two launches
}


def kernel(name: str, target: str) -> Kernel:
    launches = one_resolved_kernel(EXAMPLES / f"{name}.py", None, target=find(target), bindings={})
    return reviewed(launches, label=target, tool=Tool(version="test"), options=EmitOptions())


# test_charts.py and test_panels.py show two launches for each change.
NIGHTLY = pytest.param("flash_decoding", marks=pytest.mark.nightly)


@pytest.fixture(scope="module", params=[NIGHTLY if name == "flash_decoding" else name for name in CASES], ids=str)
def case(request: pytest.FixtureRequest) -> tuple[Kernel, Element, str]:
    """A kernel, its page, and the page's text."""
    found = kernel(request.param, CASES[request.param])
    text = page([found])
    return found, parsed(text), text


Case = tuple[Kernel, Element, str]


def test_the_page_is_self_contained(case: Case) -> None:
    _, root, text = case
    for element in root.all():
        assert "src" not in element.attributes
        href = element.attributes.get("href", "#")
        assert href.startswith("#") or (element.tag == "link" and href == "data:,")
    assert "url(" not in text and "@import" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text.partition("<body>")[0])


def test_every_link_leads_somewhere(case: Case) -> None:
    _, root, _ = case
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = [element.attributes["href"][1:] for element in root.all("a")]
    assert set(links) <= set(ids)


def test_sources_are_shown_whole(case: Case) -> None:
    found, root, _ = case
    for kind, source in (("python", found.python), ("emitted", found.source)):
        (listing,) = root.all("ol", class_=kind)
        lines = [line.all("code")[0].text for line in listing.children]
        assert lines == source.splitlines()


def test_lines_lead_to_the_other_source_and_back(case: Case) -> None:
    """The links between the sources are those of the manifest's line map and of the comments that name a line."""
    found, root, _ = case
    (python,), (emitted,) = root.all("ol", class_="python"), root.all("ol", class_="emitted")
    mapped = {text: line for text, line in found.manifest["lines"] if line}
    for number, line in mapped.items():
        own = emitted.children[number - 1]
        assert own.attributes["data-py"] == str(line)
        assert own.all("a", class_="n")[0].attributes["href"] == f"#k1-p{line}"
        back = python.children[line - 1].all("a", class_="n")[0].attributes["href"]
        assert root.by_id(back[1:]).attributes["data-py"] == str(line)
    assert mapped


def test_comments_and_declarations_lead_to_the_python_file() -> None:
    source = (
        "// a.py:3 is where",  # of the head, which is no place
        "int x;",
        "  Tile A_shared[num_stages];",
        "",
        "// a.py:5-6",
        "// Its comment.",
        "f();",
        "// [a.rule]",
        "g();",
        "}",
    )
    found = origins("\n".join(source), [[7, 5], [9, 8], [10, 0]], "a.py", {"A_shared": 2, "f": 1})
    assert found == [0, 0, 2, 0, 5, 5, 5, 5, 8, 0]


def test_every_decision_is_at_its_line_with_its_rule(case: Case) -> None:
    found, root, _ = case
    assert found.decisions
    for place in found.decisions:
        line = root.by_id(f"k1-p{place.line}")
        said, rules = line.text, [link.text for link in line.all("a")]
        for one in place.chosen:
            assert in_words(one) in said
            assert not one.rule or one.rule in rules
        for other in place.refused:
            assert other.because in said and other.edit in said and other.rule in rules


def test_every_rule_is_explained(case: Case) -> None:
    found, root, _ = case
    rules = {one.rule for place in found.decisions for one in (*place.chosen, *place.refused)} - {""}
    for rule in rules:
        entry = root.by_id(f"rule-{rule}")
        assert entry.parent is not None
        described = entry.parent.children[entry.parent.children.index(entry) + 1]
        assert described.tag == "dd" and described.text.strip()


def test_everything_has_an_accessible_name(case: Case) -> None:
    _, root, _ = case
    for element in root.all():
        named = element.attributes.get("aria-label", "") or element.text.strip()
        if element.tag in ("a", "button", "summary") or element.attributes.get("role") in ("region", "tab"):
            assert named, element
        if element.tag == "svg":
            assert element.attributes["role"] == "img" and element.children[0].tag == "title"
            assert element.children[1].tag == "desc" and element.children[1].text
        if element.attributes.get("tabindex") == "0":
            assert element.attributes.get("aria-label")
    levels = [int(element.tag[1]) for element in root.all() if re.fullmatch(r"h[1-6]", element.tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))


def test_every_tile_has_a_picture(case: Case) -> None:
    found, root, _ = case
    names = {tile.name for resolved in found.launches for tile in resolved.launch.tiles}
    titles = [svg.children[0].text.removeprefix("layout of ") for svg in root.all("svg")]
    titles_of = {name.rpartition("::")[2] for title in titles for name in title.split(", ")}
    with_layout = {name.partition("::")[2] or name for name in found.manifest["resources"]["fragments"]}
    assert with_layout <= titles_of & names


def test_targets_have_tabs() -> None:
    kernels = [kernel("row_softmax", target) for target in ("cuda:sm_80", "hip:gfx942")]
    root = parsed(page(kernels))
    tabs, panels = root.all("button", role="tab"), root.all("section", role="tabpanel")
    assert [tab.text for tab in tabs] == ["cuda:sm_80", "hip:gfx942"]
    assert [tab.attributes["aria-controls"] for tab in tabs] == [panel.attributes["id"] for panel in panels]
    assert [tab.attributes["aria-selected"] for tab in tabs] == ["true", "false"]


@pytest.mark.nightly
def test_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tile2cu", "review", str(EXAMPLES / "row_softmax.py")]
    for seed in ("1", "2"):
        place = str(tmp_path / f"{seed}.html")
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([*command, "--no-compile", "-o", place], check=True, env=environment)
    assert (tmp_path / "1.html").read_bytes() == (tmp_path / "2.html").read_bytes()


def test_text_of_the_user_is_escaped(tmp_path: Path) -> None:
    text = (EXAMPLES / "vector_add.py").read_text(encoding="utf-8").replace('"""', '"""<script>&amp;"', 1)
    (tmp_path / "vector_add.py").write_text(text, encoding="utf-8")
    place = tmp_path / "page.html"
    assert main(["review", str(tmp_path / "vector_add.py"), "--no-compile", "-o", str(place)]) == 0
    root = parsed(place.read_text(encoding="utf-8"))
    assert len(root.all("script")) == 1
    assert "<script>&amp;" in root.by_id("k1-p1").text


def test_a_warning_is_at_its_line(tmp_path: Path) -> None:
    text = (EXAMPLES / "gemm_relu.py").read_text(encoding="utf-8").replace("T.clear(C_local)", "pass")
    path = tmp_path / "gemm_relu.py"
    path.write_text(text, encoding="utf-8")
    launches = one_resolved_kernel(path, None, target=find("cuda:sm_80"), bindings={})
    found = reviewed(launches, label="", tool=Tool(version="test"), options=EmitOptions())
    assert found.warnings
    root = parsed(page([found]))
    for warning in found.warnings:
        assert warning.message in root.by_id(f"k1-p{warning.span.line}").text
        assert warning.render() in root.by_id("k1-warnings").text


@pytest.mark.needs("nvcc")
def test_what_the_compiler_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path))
    place = tmp_path / "page.html"
    assert main(["review", str(EXAMPLES / "vector_add.py"), "--size", "N=4096", "-o", str(place)]) == 0
    report = parsed(place.read_text(encoding="utf-8")).by_id("k1-resources").text
    assert re.search(r"registers\s*\d+ per thread", report) and "blocks on 108 SMs" in report
    assert re.search(r"\d+ instructions in the code", report)


def test_a_missing_compiler_is_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise CompileError("T2C-R010", "no nvcc")

    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path))
    monkeypatch.setattr(resources, "inspect", missing)
    place = tmp_path / "page.html"
    assert main(["review", str(EXAMPLES / "vector_add.py"), "-o", str(place)]) == 0
    assert "not compiled: error[T2C-R010]: no nvcc" in parsed(place.read_text(encoding="utf-8")).text


def test_a_size_that_the_kernel_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "page.html"
    assert main(["review", str(EXAMPLES / "vector_add.py"), "--size", "Q=1.5", "-o", str(place)]) == 1
    assert "is no whole number" in capsys.readouterr().err
    assert not place.exists()
