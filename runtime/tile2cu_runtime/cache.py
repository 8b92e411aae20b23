"""A content-addressed build cache that is safe with concurrent processes, killed builds and damaged files.

An entry is a folder named by the hash of everything that determines its content, so an entry is never stale. It is
built in a temporary folder in the same place and renamed; a seal, written last, lists its files with their hashes, and
an entry that does not match its seal is rebuilt. Locks are flock(2), which the kernel releases when the process exits.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tile2cu_runtime import paths
from tile2cu_runtime.errors import CompileError

_SEAL = "sealed.json"


@dataclass(frozen=True)
class Entry:
    """An intact entry of the cache. `built` is True if this call built it."""

    folder: Path
    built: bool


def content_key(*parts: str | bytes) -> str:
    """The hash of the parts, 32 hexadecimal digits. Parts are delimited: ("ab", "c") differs from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def tree_key(folder: Path, suffixes: tuple[str, ...] = (".h", ".cpp")) -> str:
    """The hash of all files with these suffixes in a folder: their relative paths and contents."""
    parts: list[str | bytes] = []
    start = len(os.path.join(folder, ""))  # relpath would take more time than the hashes
    for path in sorted(_files(folder)):
        if path.endswith(suffixes):
            parts += [path[start:], _digest(path)]
    return content_key(*parts)


def get_or_build(kind: str, key: str, build: Callable[[Path, Path], None], *, root: Path | None = None) -> Entry:
    """The entry `kind/key`, existing or built by one of the processes that request it.

    `build(temporary, place)` fills the temporary folder, which is then renamed to `place`. If it raises CompileError,
    the folder is kept as `kind/failed/key`, which the error names; `place` never holds an incomplete entry.
    """
    shelf = (root or paths.cache_dir()) / kind
    place = shelf / key
    if _is_whole(place):
        return Entry(place, built=False)
    with _locked(shelf, key):
        if _is_whole(place):
            return Entry(place, built=False)
        # With the lock held, other folders of this key are damaged or left by a killed build.
        for leftover in [place, *shelf.glob(f"{key}.build-*")]:
            shutil.rmtree(leftover, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{key}.build-", dir=shelf))
        try:
            build(temporary, place)
        except CompileError as problem:
            raise _kept(problem, temporary, shelf / "failed" / key) from None
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _seal(temporary)
        temporary.rename(place)
    return Entry(place, built=True)


def _files(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(parent, name)


def _digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: _digest(folder / name) for name in names}


def _digest(path: str | Path) -> str:
    """The hash of a file's content, cached by its metadata: precompiled headers are large."""
    state = os.stat(path)
    return _digest_of(str(path), state.st_ino, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _digest_of(path: str, inode: int, size: int, modified: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _seal(folder: Path) -> None:
    names = sorted(os.path.relpath(path, folder) for path in _files(folder))
    (folder / _SEAL).write_text(json.dumps(_digests(folder, names), indent=1) + "\n", encoding="utf-8")


def _is_whole(folder: Path) -> bool:
    """Whether the entry exists and every file in it matches its seal."""
    try:
        sealed = json.loads((folder / _SEAL).read_bytes())
        return len(sealed) > 0 and bool(sealed == _digests(folder, sealed))
    except (OSError, ValueError, TypeError):
        return False


def _kept(problem: CompileError, temporary: Path, place: Path) -> CompileError:
    """Moves the folder of a failed build to its final place; returns the error with that path in its text."""
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary.rename(place)
    old, new = str(temporary), str(place)
    return CompileError(
        problem.code,
        problem.message,
        command=problem.command.replace(old, new),
        output=problem.output.replace(old, new),
        kept=new,
        help=problem.help,
    )


@contextlib.contextmanager
def _locked(shelf: Path, key: str) -> Iterator[None]:
    """Holds the key's lock. Errors: T2C-R015 when the cache is not writable."""
    import fcntl

    # Lock files are not removed: two processes could then lock two files of the same name.
    try:
        shelf.mkdir(parents=True, exist_ok=True)
        lock = os.open(shelf / f"{key}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as problem:
        raise CompileError(
            "T2C-R015",
            f"cannot write to the cache {shelf}: {problem.strerror}",
            help="set TILE2CU_CACHE to a writable folder",
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
