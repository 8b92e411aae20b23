"""headers/tl/hip/library.h, which replaces AMD's device library, against the C library in long double."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.needs("g++")


def test_functions_of_float_are_rounded_once(printed: Callable[[str], Any]) -> None:
    errors = printed("library")
    assert errors.pop("special powers that are wrong") == 0
    assert errors.pop("erf") < 0.7
    assert max(errors.values()) < 0.51
