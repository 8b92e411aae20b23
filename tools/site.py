"""Collects the pages of the documentation site, all files that they link to, and the gallery, in build/pages.

`python tools/site.py && zensical build --strict -f build/zensical.toml` (pip install 'tile2cu[docs]') makes build/site.
build/zensical.toml is zensical.toml, with the pages of docs/ that its navigation does not name in a section "More", and
the gallery, which has a review page per example and target (tools/gallery.py). Paths stay as in the checkout, so that
the links of README.md, docs/ and benchmarks/ are those of the site. Errors: a link that leads nowhere is a
FileNotFoundError.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
CONFIG = ROOT / "build" / "zensical.toml"
HOME = "docs/index.md"
GALLERY = "gallery/index.md"
_BEFORE_GALLERY = '    { "Review page" = "docs/review.md" },\n'
# Links and pictures of Markdown, outside of code.
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)|^\[[^\]]+\]: ([^\s#]+)", re.MULTILINE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def collect(pages: Path) -> tuple[Path, ...]:
    """Copies the pages, and what they link to, below `pages`; gives their paths relative to the checkout."""
    shutil.rmtree(pages, ignore_errors=True)
    pending, found = [ROOT / HOME, *sorted((ROOT / "docs").rglob("*.md"))], dict[Path, None]()
    while pending:
        page = pending.pop(0)
        if page not in found and page.is_file():
            found[page] = None
            pending += linked(page) if page.suffix == ".md" else ()
    for path in found:
        copy = pages / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    # The site's front page; its links are relative to docs/.
    front = re.sub(r"\]\((?!\.\.|http)([^)]+)\)", r"](docs/\1)", (ROOT / HOME).read_text(encoding="utf-8"))
    (pages / "index.md").write_text(front.replace("](../", "]("), encoding="utf-8")
    return tuple(path.relative_to(ROOT) for path in found)


def configured(config: str) -> str:
    """The configuration with all pages of docs/ in its navigation, and the gallery behind the review page."""
    assert _BEFORE_GALLERY in config, "the navigation names the review page"
    config = config.replace(_BEFORE_GALLERY, f'{_BEFORE_GALLERY}    {{ "Gallery" = "{GALLERY}" }},\n')
    pages = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))
    more = [f'    "{page}",' for page in pages if f'"{page}"' not in config and page != HOME]
    section = "\n".join(('  { "More" = [', *more, "  ] },", "]")) if more else "]"
    return re.sub(r"^\]$", lambda _: section, config, count=1, flags=re.MULTILINE)


def linked(page: Path) -> Iterator[Path]:
    """The files that a page links to. Errors: FileNotFoundError."""
    for link in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        name = "".join(link)
        if not name.startswith(("http:", "https:")):
            path = (page.parent / name).resolve()
            if not path.exists():
                raise FileNotFoundError(f"{page.relative_to(ROOT)} links to {name}")
            yield path


def main() -> int:
    """Writes all of it. Gives the number of examples that have no page."""
    sys.path[:0] = [str(ROOT)]
    from tools.gallery import gallery, pages_of_examples

    collect(PAGES)
    failed = gallery(PAGES / GALLERY.partition("/")[0], pages_of_examples())
    CONFIG.write_text(configured((ROOT / "zensical.toml").read_text(encoding="utf-8")), encoding="utf-8")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
