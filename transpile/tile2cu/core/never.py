"""What a match over all kinds of something ends with."""

from typing import NoReturn


def no_case(value: NoReturn) -> AssertionError:
    """The error of a match without a case for a value: a type checker shows at `raise no_case(value)` that there is
    none, as typing.assert_never does (from Python 3.11 on)."""
    return AssertionError(f"no case for {type(value).__name__}")
