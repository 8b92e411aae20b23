"""One table of SQLite in a file that several processes use."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")


class UnusableError(Exception):
    """The file cannot be read or written as a database; the message says why."""


def transact(path: Path, table: str, seconds: float, action: Callable[["sqlite3.Connection"], T]) -> T:
    """What an action gives, in one transaction, after the statement that creates the `table` where there is none.

    `seconds` is how long to wait for another process. Raises UnusableError, also in a Python without SQLite.
    """
    try:
        import sqlite3
    except ImportError as error:
        raise UnusableError(str(error)) from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=seconds)) as db, db:
            db.execute(table)
            return action(db)
    except (sqlite3.Error, OSError) as error:
        raise UnusableError(str(error)) from error
