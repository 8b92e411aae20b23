"""The user's cache of measured entries, in SQLite: what a killed or repeated tuning need not measure again."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.tuning.database import UnusableError, transact
from tile2cu.tuning.record import Sizes, Tuned, TuneFile, entry_of

if TYPE_CHECKING:
    import sqlite3

_TABLE = "CREATE TABLE IF NOT EXISTS tuned (key TEXT PRIMARY KEY, entry TEXT NOT NULL)"
_SECONDS = 30.0  # to wait for another process


class Store:
    """Entries by a key, which names all that a time depends on. A damaged file is one warning, and an empty store."""

    def __init__(self, path: Path, warn: Callable[[str], None] | None = None) -> None:
        self._path = path
        self._warn = warn or (lambda message: print(message, file=sys.stderr))
        self._broken = False

    def get(self, key: str) -> Tuned | None:
        found = self._do(lambda db: db.execute("SELECT entry FROM tuned WHERE key = ?", (key,)).fetchone())
        try:
            return entry_of(json.loads(found[0])) if found else None
        except (ValueError, KeyError, TypeError, StopIteration):
            return None

    def put(self, key: str, entry: Tuned) -> None:
        text = json.dumps(entry.as_data())
        self._do(lambda db: db.execute("INSERT OR REPLACE INTO tuned VALUES (?, ?)", (key, text)))

    def _do(self, action: Callable[["sqlite3.Connection"], object]) -> tuple[str] | None:
        if self._broken:
            return None
        try:
            found = transact(self._path, _TABLE, _SECONDS, action)
            return found if isinstance(found, tuple) else None
        except UnusableError as error:
            self._broken = True
            self._warn(f"warning: the cache of tuned settings, {self._path}, is not used: {error}")
            return None


def key_of(file: TuneFile, identity: Sequence[str], sizes: Sizes, others: Sequence[object] = ()) -> str:
    """The key of a shape's result: the kernel, the card with its clocks and the tools, the sizes, and `others`.

    These are other values, in JSON's types, that decide what is built: arguments, files, the style, the rules.
    """
    return json.dumps([file.kernel, file.target, file.sha256, *identity, sizes, others])
