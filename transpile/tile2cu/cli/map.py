"""`tile2cu map NAME.json 66` or `... py:22`: which Python line a line of the text comes from, or the reverse."""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tile2cu.core.errors import Tile2CuError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", type=Path, help="the kernel's NAME.json")
    parser.add_argument("line", help="a line of the text, or py:LINE for one of the Python file")


def run(options: argparse.Namespace) -> int:
    from tile2cu.project.on_disk import content_of, read_manifest

    wanted = re.fullmatch(r"(py:)?([1-9]\d*)", options.line)
    if wanted is None:
        raise Tile2CuError(
            "T2C-C018",
            f"`{options.line}` is no line",
            help="write 66 for a line of the text, py:22 for one of the Python",
        )
    manifest = read_manifest(options.manifest)
    if manifest is None:
        raise Tile2CuError("T2C-C018", f"{options.manifest} is not a manifest of tile2cu")
    text_file = next(name for name in manifest["files"] if name.endswith((".cu", ".hip")))
    text = (content_of(options.manifest.parent / text_file) or b"").decode(errors="replace").splitlines()
    source = manifest["source"]["file"]
    found = (
        list(_text_ranges(manifest["lines"], int(wanted[2]), len(text), text_file))
        if wanted[1]
        else list(_python_line(manifest["lines"], int(wanted[2]), source))
    )
    print("\n".join(found) or f"{options.line}: no line of {text_file if wanted[1] else source} belongs to it")
    return 0 if found else 1


def _python_line(lines: Sequence[Sequence[int]], number: int, source: str) -> Iterator[str]:
    """The Python line of the last entry at or above the line, if there is one."""
    if python := python_line(lines, number):
        yield f"{source}:{python}"


def python_line(lines: Sequence[Sequence[int]], number: int) -> int:
    """The Python line that a line of the source comes from, by the manifest's list; 0 where there is none."""
    above = [python for text, python in lines if text <= number]
    return above[-1] if above else 0


def _text_ranges(lines: Sequence[Sequence[int]], number: int, last: int, file: str) -> Iterator[str]:
    """All parts of the text that come from the Python line."""
    ends = [text - 1 for text, _ in lines[1:]] + [max(last, lines[-1][0] if lines else 0)]
    for (first, python), end in zip(lines, ends, strict=True):
        if python == number:
            yield f"{file}:{first}" if end <= first else f"{file}:{first}-{end}"
