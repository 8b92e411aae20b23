"""Writes the review pages of the examples, and a table of them: python tools/gallery.py FOLDER [--target TARGET ...].

The documentation site has them (tools/site.py).
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from tests.golden.cases import GOLDEN  # noqa: E402
from tile2cu.cli import main as tile2cu  # noqa: E402

TARGETS = ("cuda:sm_90a", "cuda:sm_80", "hip:gfx942")
_HEAD = """# Gallery

The [review page](../docs/review.md) of each example, by target: sources side by side, decisions with their reasons,
pipelines, shared memory, layouts. `tile2cu review FILE` writes such a page about any kernel, with registers, waves and
checks where compilers and sizes are given.

"""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A file, a target, and the values that its kernels are emitted with."""

    file: Path
    target: str
    bindings: Mapping[str, object]

    @property
    def name(self) -> str:
        """Of the page's file."""
        return f"{self.file.stem}.{self.target.partition(':')[2]}.html"

    @property
    def about(self) -> str:
        """The first sentence of the file."""
        text = self.file.read_text(encoding="utf-8").partition('"""')[2].partition('"""')[0]
        return text.strip().partition("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip(".")


def pages_of_examples(targets: Sequence[str] = TARGETS) -> list[Page]:
    """A page per example and target, with the values of its first golden file.

    An example without a golden file has a page for the first target, with its own values.
    """
    found: dict[tuple[str, str], Page] = {}
    for each in GOLDEN:
        if each.target in targets and each.style == "tl":
            page = Page(file=ROOT / "examples" / each.example, target=each.target, bindings=each.bindings)
            found.setdefault((each.example, each.target), page)
    for file in sorted((ROOT / "examples").glob("*.py")):
        if "@tilelang.jit" in file.read_text(encoding="utf-8") and not any(name == file.name for name, _ in found):
            found[file.name, targets[0]] = Page(file=file, target=targets[0], bindings={})
    return [found[key] for key in sorted(found)]


def gallery(folder: Path, pages: Iterable[Page]) -> list[Page]:
    """Writes the pages, and index.md with a table of them. Gives those that could not be reviewed."""
    folder.mkdir(parents=True, exist_ok=True)
    made, failed = [], []
    for page in pages:
        values = [word for name, value in page.bindings.items() for word in ("-D", f"{name}={value}")]
        command = ["review", str(page.file), "--target", page.target, *values, "--no-compile"]
        ok = tile2cu([*command, "-o", str(folder / page.name)]) == 0
        (made if ok else failed).append(page)
    (folder / "index.md").write_text(_HEAD + "\n".join(_table(made)) + "\n", encoding="utf-8")
    return failed


def _table(pages: Sequence[Page]) -> list[str]:
    """A row per file, a column per target."""
    targets = list(dict.fromkeys(page.target for page in pages))
    rows = [f"| Example | Computes | {' | '.join(targets)} |", "|" + "---|" * (2 + len(targets))]
    for file in dict.fromkeys(page.file for page in pages):
        of_file = {page.target: page for page in pages if page.file == file}
        links = (f"[page]({of_file[target].name})" if target in of_file else "" for target in targets)
        about = next(iter(of_file.values())).about.replace("|", "\\|")
        rows.append(f"| `{file.name}` | {about} | {' | '.join(links)} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", dest="targets", action="append", default=[])
    options = parser.parse_args()
    return len(gallery(options.folder, pages_of_examples(options.targets or TARGETS)))


if __name__ == "__main__":
    sys.exit(main())
