"""What the rules decided of settings, in the user's cache: a choice in another process need not ask them again.

All of it follows from the key, which names the file, its bindings and this tile2cu: a choice is the same with and
without it. A cache that cannot be read or written is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tile2cu.tuning.database import UnusableError, transact

if TYPE_CHECKING:
    import sqlite3

_T = TypeVar("_T")
_TABLE = "CREATE TABLE IF NOT EXISTS decided (key TEXT, what TEXT, content TEXT, PRIMARY KEY (key, what))"
_SECONDS = 1.0  # to wait for another process
_MOST = 1 << 15  # rows, some MB; with more, those of other keys are removed

Contents = dict[str, Any]  # values of JSON by what they are about


class Decided:
    """Contents by keys, in a file of SQLite. Each process adds its own, and keeps those of others."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def of(self, key: str) -> Contents:
        """All that is known for a key."""
        if self._path is None or not self._path.exists():
            return {}
        rows = self._do(lambda db: db.execute("SELECT what, content FROM decided WHERE key = ?", (key,)).fetchall())
        try:
            return {what: json.loads(content) for what, content in rows or ()}
        except ValueError:
            return {}  # another program's table

    def add(self, key: str, new: Mapping[str, object]) -> None:
        rows = [(key, what, json.dumps(content)) for what, content in new.items()]

        def action(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO decided VALUES (?, ?, ?)", rows)
            ((count,),) = db.execute("SELECT count(*) FROM decided").fetchall()
            if count > _MOST:
                db.execute("DELETE FROM decided WHERE key != ?", (key,))

        self._do(action)

    def _do(self, action: Callable[[sqlite3.Connection], _T]) -> _T | None:
        if self._path is None:
            return None
        try:
            return transact(self._path, _TABLE, _SECONDS, action)
        except UnusableError:
            return None
