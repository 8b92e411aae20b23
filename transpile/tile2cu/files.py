"""Reading a source; writing files: all of a set, or none."""

import errno
import io
import os
import tokenize
from collections.abc import Mapping
from pathlib import Path

from tile2cu.core.errors import Tile2CuError

_MOST_BYTES = 4_000_000  # of a Python file: more than the front end reads, in any encoding


def read(path: Path) -> str:
    """A source file's text. Raises T2C-C001 when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Tile2CuError("T2C-C001", f"cannot read `{path}`: {reason}") from error


def read_python(path: Path) -> str:
    """A Python file's text, in the encoding that Python would read it in. Raises T2C-C001 when it cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        return python_text(content)
    except OSError as error:
        raise Tile2CuError("T2C-C001", f"cannot read `{path}`: {error.strerror}") from error
    except (LookupError, SyntaxError, ValueError) as error:
        raise Tile2CuError("T2C-C001", f"cannot read `{path}`: {error}") from None


def python_text(content: bytes) -> str:
    """The text of a Python file: a byte order mark or a coding line names its encoding, UTF-8 if there is neither.

    Raises SyntaxError, LookupError or ValueError where Python would not read it.
    """
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    try:
        return io.TextIOWrapper(io.BytesIO(content), encoding).read()
    except UnicodeError:  # of a kind that has no short message
        raise ValueError(f"it is not {encoding.removesuffix('-sig').upper()} text") from None


def relative_to(path: Path, other: Path) -> str:
    """A file's path from the folder of another file, with slashes."""
    return Path(os.path.relpath(path, other.parent)).as_posix()


def write_files(files: Mapping[str, str | bytes], folder: Path) -> list[Path]:
    """Writes all files or none: each to a temporary name first, then renamed. Names are paths from the folder.

    Raises T2C-C005 when the folder cannot be written to.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            place = folder / name
            if place.is_dir():  # a rename would find that out when others are done
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            place.parent.mkdir(parents=True, exist_ok=True)
            beside = place.parent / f".{place.name}.{os.getpid()}.tmp"  # of `.`, too, which has no name
            staged.append((beside, place))
            beside.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        for beside, place in staged:
            os.replace(beside, place)
    except OSError as error:
        for beside, _ in staged:
            beside.unlink(missing_ok=True)
        raise Tile2CuError("T2C-C005", f"cannot write to `{folder}`: {error.strerror}") from error
    return [place for _, place in staged]
