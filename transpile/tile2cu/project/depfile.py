"""-MD: a make rule with the prerequisites of the output."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tile2cu.emitter import Emitted


def depfile(source: Path, folder: Path, emitted: Sequence["Emitted"], name: Path | None) -> tuple[Path, str]:
    """The path of the rule (`name`, or next to the files under the source's name) and its text."""
    targets = [folder / file for one in emitted for file in one.files]
    needed = {source: None}
    for one in emitted:
        needed |= {source.parent / each: None for each in json.loads(one.manifest)["source"]["imports"]}
    rule = " ".join(map(_escaped, targets)) + ": " + " ".join(map(_escaped, needed)) + "\n"
    return name or folder / f"{source.stem}.d", rule


def _escaped(path: Path) -> str:
    """A path as make reads it."""
    return str(path).replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")
