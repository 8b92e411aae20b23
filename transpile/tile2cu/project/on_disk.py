"""What lies in an output folder: which files are as they were emitted, and which were edited by hand.

A kernel's manifest names its files with the hashes of what was emitted. A file that differs from it was edited.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Placed:
    """The place of a kernel's file. `content` None: nothing is there; `base` None: no manifest says what was."""

    path: Path
    content: bytes | None
    base: str | None

    @property
    def edited(self) -> bool:
        """Whether somebody else than tile2cu wrote what lies here."""
        return self.content is not None and sha256(self.content) != self.base


def placed(folder: Path, kernel: str, names: Mapping[str, object]) -> list[Placed]:
    """The kernel's files in the folder, by the names that they have or shall have; the manifest is not among them."""
    manifest = read_manifest(folder / f"{kernel}.json") or {}
    recorded = manifest.get("files", {})
    return [
        Placed(path=folder / name, content=content_of(folder / name), base=recorded.get(name))
        for name in names
        if name != f"{kernel}.json"
    ]


def manifests(folder: Path) -> Iterator[Path]:
    """The manifests of tile2cu in a folder, in the order of their names."""
    return (path for path in sorted(folder.glob("*.json")) if read_manifest(path))


def read_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest in a file, or None where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and {"tile2cu", "files", "kernel"} <= found.keys() else None


def content_of(path: Path) -> bytes | None:
    """The bytes of a file, or None where there is none."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def sha256(content: bytes | str) -> str:
    """The hash of a file's bytes, or of a text in UTF-8."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def source_sha256(path: Path) -> str | None:
    """The hash of a source as the front end reads it: its text, with newlines as Python has them."""
    try:
        return sha256(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
