"""The base of all frozen data."""

from msgspec import Struct


class Record(Struct, frozen=True, dict=True):
    """Data whose classes are made, and whose values are built, hashed and compared, in C; subclasses are frozen.

    A record has a `__dict__`, where `core.memo` keeps what was computed from it.
    """
