"""The base of all frozen data."""

from abc import ABCMeta

from msgspec import Struct, StructMeta


class Record(Struct, frozen=True, dict=True):
    """Data whose classes are made, and whose values are built, hashed and compared, in C; subclasses are frozen.

    A record has a `__dict__`, where `core.memo` keeps what was computed from it.
    """


class Abstract(StructMeta, ABCMeta):
    """The metaclass of records with abstract methods: a class that lacks one has no instances."""
