"""Prints the tables of docs/migrating.md; with --write, puts them there. They are the end of the page."""

import sys
from pathlib import Path

from tile2cu.tilelang.counterparts import table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "migrating.md"


def main() -> None:
    lines = list(table())
    if "--write" not in sys.argv:
        print("\n".join(lines))
        return
    text = PAGE.read_text(encoding="utf-8").partition(f"{lines[0]}\n")[0]
    PAGE.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
