"""The last case of an exhaustive match."""

from typing import NoReturn


def no_case(value: NoReturn) -> AssertionError:
    """The error of a match without a case for a value, as typing.assert_never (from Python 3.11 on).

    A type checker proves at `raise no_case(value)` that there is no such value.
    """
    return AssertionError(f"no case for {type(value).__name__}")
