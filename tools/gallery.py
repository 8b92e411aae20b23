"""Writes the review page of every example, and an index of them: python tools/gallery.py FOLDER [--target TARGET]."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from tests.golden.cases import GOLDEN  # noqa: E402
from tile2cu.cli import main as tile2cu  # noqa: E402

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>Examples of tile2cu</title></head>
<body>
<h1>Examples of tile2cu, for {target}</h1>
<ul>
{items}
</ul>
</body>
</html>
"""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A file, and the values that its kernels are emitted with."""

    file: Path
    bindings: Mapping[str, object]


def pages_of_examples(target: str) -> list[Page]:
    """A page per example, with the values of its first golden file for the target."""
    found: dict[str, Page] = {}
    for each in GOLDEN:
        if each.target == target and each.style == "tl":
            found.setdefault(each.example, Page(file=ROOT / "examples" / each.example, bindings=each.bindings))
    return [found[name] for name in sorted(found)]


def gallery(folder: Path, pages: Iterable[Page], target: str) -> list[Path]:
    """Writes the pages and index.html. Gives the files that could not be reviewed."""
    folder.mkdir(parents=True, exist_ok=True)
    items, failed = [], []
    for page in pages:
        file, output = page.file, folder / f"{page.file.stem}.html"
        values = [word for name, value in page.bindings.items() for word in ("-D", f"{name}={value}")]
        if tile2cu(["review", str(file), "--target", target, *values, "--no-compile", "-o", str(output)]):
            failed.append(file)
            continue
        about = file.read_text(encoding="utf-8").partition('"""')[2].partition('"""')[0].partition("\n")[0]
        items.append(f'<li><a href="{escape(file.stem)}.html">{escape(file.name)}</a>: {escape(about)}</li>')
    index = _PAGE.format(target=escape(target), items="\n".join(items))
    (folder / "index.html").write_text(index, encoding="utf-8")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="cuda:sm_90a")
    options = parser.parse_args()
    return len(gallery(options.folder, pages_of_examples(options.target), options.target))


if __name__ == "__main__":
    sys.exit(main())
