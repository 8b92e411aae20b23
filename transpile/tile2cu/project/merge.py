"""Bringing an edited file up to date: a three-way merge from the text that the edit started from.

A merge that conflicts leaves the file alone and goes, with markers, into a side file, NAME.HASH.merge; HASH names the
text that was emitted then. Once its markers are gone, the next update takes it for the file.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.project.memory import Memory
from tile2cu.project.on_disk import Placed, sha256

_MARKERS = re.compile(rb"^(<{7}|\|{7}|={7}|>{7})( |$)", re.MULTILINE)
_HASH_DIGITS = 12


class Merged(Record, frozen=True, kw_only=True):
    """What becomes of a file: its new `content` (None: it stays), a side file to `write`, side files to `remove`."""

    what: str  # "kept", "merged", "resolved", "conflict", "unresolved" or "wrote"
    content: bytes | None = None
    side: Path | None = None
    side_content: bytes = b""
    remove: tuple[Path, ...] = ()

    @property
    def open(self) -> bool:
        """Whether somebody has to decide."""
        return self.what in ("conflict", "unresolved")


def merged(file: Placed, now: str, memory: Memory) -> Merged:
    """What becomes of a file when `now` is what is emitted. Raises T2C-C015 when git, which merges, is missing."""
    sides = sorted(file.path.parent.glob(f"{file.path.name}.*.merge"))
    if sides:
        return _with_sides(file, now, memory, sides)
    if file.content is None or not file.edited or file.content == now.encode():
        return Merged(what="wrote", content=now.encode())
    if file.base == sha256(now):
        return Merged(what="kept")
    base = memory.base(file.path, file.base) if file.base else None
    return _three_way(file.path, file.content, base, now)


def _with_sides(file: Placed, now: str, memory: Memory, sides: list[Path]) -> Merged:
    """Goes on from the side file of an earlier conflict: waits for it, or takes it."""
    content = sides[-1].read_bytes()
    if len(sides) > 1 or _MARKERS.search(content):
        return Merged(what="unresolved", side=sides[-1])
    digest = sides[-1].name.removeprefix(f"{file.path.name}.").removesuffix(".merge")
    if sha256(now).startswith(digest):
        return Merged(what="resolved", content=content, remove=tuple(sides))
    # Resolved, but the source went on meanwhile.
    again = _three_way(file.path, content, memory.base_by_prefix(digest), now)
    return Merged(
        what=again.what, content=again.content, side=again.side, side_content=again.side_content, remove=tuple(sides)
    )


def _three_way(path: Path, edited: bytes, base: bytes | None, now: str) -> Merged:
    """git's merge of lines. Without a base every line of both is in conflict: nothing is guessed."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"edited": edited, "base": base or b"", "now": now.encode()}
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        labels = ["-L", "edited", "-L", "as it was emitted", "-L", "emitted now"]
        try:
            done = subprocess.run(
                ["git", "merge-file", "-p", "--diff3", *labels, *files], cwd=folder, capture_output=True
            )
        except OSError:
            raise Tile2CuError("T2C-C015", "there is no git, which merges", help="apt-get install git") from None
    if done.returncode == 0:
        return Merged(what="merged", content=done.stdout)
    if done.returncode > 127:
        raise Tile2CuError("T2C-C015", f"git merge-file failed for {path}: {done.stderr.decode(errors='replace')}")
    side = path.with_name(f"{path.name}.{sha256(now)[:_HASH_DIGITS]}.merge")
    return Merged(what="conflict", side=side, side_content=done.stdout)
