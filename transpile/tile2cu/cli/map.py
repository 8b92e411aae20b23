"""`tile2cu map NAME.cu:66`, `NAME.json 66` or `NAME.json py:22`: a line of the source in Python, or the reverse."""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tile2cu.core.errors import Tile2CuError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", type=Path, help="the kernel's NAME.json, or NAME.cu:LINE")
    parser.add_argument("line", nargs="?", help="a line of the text, or py:LINE for one of the Python file")


def run(options: argparse.Namespace) -> int:
    from tile2cu.project.on_disk import content_of, read_manifest

    path, line = _place(options.manifest, options.line)
    wanted = re.fullmatch(r"(py:)?([1-9]\d*)", line)
    if wanted is None:
        raise Tile2CuError(
            "T2C-C018",
            f"`{line}` is no line" if line else f"of {path} no line is named",
            help="write 66 for a line of the text, py:22 for one of the Python",
        )
    manifest = read_manifest(path)
    if manifest is None:
        raise Tile2CuError("T2C-C018", f"{path} is not a manifest of tile2cu")
    text_file = next(name for name in manifest["files"] if name.endswith((".cu", ".hip")))
    text = (content_of(path.parent / text_file) or b"").decode(errors="replace").splitlines()
    source = manifest["source"]["file"]
    found = (
        list(_text_ranges(manifest["lines"], int(wanted[2]), len(text), text_file))
        if wanted[1]
        else list(_python_line(manifest["lines"], int(wanted[2]), source))
    )
    print("\n".join(found) or f"{line}: no line of {text_file if wanted[1] else source} belongs to it")
    return 0 if found else 1


def _place(file: Path, line: str | None) -> tuple[Path, str]:
    """The manifest and the line: the manifest of an emitted source is next to it."""
    of_file = None if line is not None or file.is_file() else re.fullmatch(r"(.+\.(?:cu|hip|json)):(\w+)", str(file))
    named, line = (Path(of_file[1]), of_file[2]) if of_file else (file, line or "")
    return (named.with_suffix(".json") if named.suffix in (".cu", ".hip") else named), line


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
