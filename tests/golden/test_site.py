"""The documentation site: its pages are those of docs/, and each link leads to a file of the checkout."""

import re
from pathlib import Path

import pytest
from tools import site
from tools.gallery import gallery, pages_of_examples

CONFIG = (site.ROOT / "zensical.toml").read_text(encoding="utf-8")


def test_all_pages_are_in_the_navigation(tmp_path: Path) -> None:
    found = {str(path) for path in site.collect(tmp_path / "pages")}
    listed = set(re.findall(r'"([\w/]+\.md)"', site.configured(CONFIG)))
    pages = {str(path.relative_to(site.ROOT)) for path in (site.ROOT / "docs").rglob("*.md")}
    assert pages | {"benchmarks/RESULTS.md", site.GALLERY} == listed - {"index.md"} | {site.HOME}
    assert listed - {"index.md", site.GALLERY} <= found
    assert "examples/gemm_relu.py" in found and "docs/images/C_local.svg" in found


def test_the_front_page_has_its_links(tmp_path: Path) -> None:
    site.collect(tmp_path / "pages")
    front = tmp_path / "pages/index.md"
    links = re.findall(r"\]\(([^)#]+)\)", front.read_text(encoding="utf-8"))
    assert len(links) > 10 and [link for link in links if not (front.parent / link).is_file()] == []


def test_pages_that_the_navigation_does_not_name_are_added() -> None:
    config = site.configured(CONFIG.replace('    { "Glossary" = "docs/glossary.md" },\n', ""))
    assert re.search(r'  \{ "More" = \[\n(?:    "docs/[\w/]+\.md",\n)*    "docs/glossary\.md",\n', config)


def test_the_gallery_has_a_page_for_each_example(tmp_path: Path) -> None:
    pages = pages_of_examples()
    examples = {path.name for path in (site.ROOT / "examples").glob("*.py")} - {"quickstart.py"}  # has no kernel
    assert {page.file.name for page in pages} == examples
    few = [page for page in pages if page.file.stem in ("vector_add", "gemm_few_rows")]
    assert gallery(tmp_path, few) == []
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((\S+\.html)\)", index)
    assert sorted(links) == sorted(path.name for path in tmp_path.glob("*.html")) == sorted(page.name for page in few)
    assert "| `vector_add.py` | " in index and "gemm_few_rows.sm_90a.html" in links


def test_a_link_to_nothing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("`[code](none.md)` [no page](gone.md#part)", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"page.md links to gone.md"):
        list(site.linked(page))
