"""Writes the review page of every example, and an index of them: python tools/gallery.py FOLDER [--target TARGET]."""

import argparse
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

from tile2cu.cli import main as tile2cu

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
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


def gallery(folder: Path, files: Iterable[Path], target: str) -> list[Path]:
    """Writes the pages of these files and index.html. Gives the files that could not be reviewed."""
    folder.mkdir(parents=True, exist_ok=True)
    items, failed = [], []
    for file in files:
        command = ["review", str(file), "--target", target, "--no-compile", "-o", str(folder / f"{file.stem}.html")]
        if tile2cu(command):
            failed.append(file)
            continue
        about = file.read_text(encoding="utf-8").partition('"""')[2].partition('"""')[0].partition("\n")[0]
        items.append(f'<li><a href="{escape(file.stem)}.html">{escape(file.name)}</a>: {escape(about)}</li>')
    page = _PAGE.format(target=escape(target), items="\n".join(items))
    (folder / "index.html").write_text(page, encoding="utf-8")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="cuda:sm_90a")
    options = parser.parse_args()
    failed = gallery(options.folder, sorted(EXAMPLES.glob("*.py")), options.target)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
