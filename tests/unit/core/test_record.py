"""Records: the base of frozen data."""

import pytest

from tile2cu.core.layout import Warps
from tile2cu.core.schedule import Schedule


class WithoutSteps(Schedule, frozen=True):
    """A strategy that states no order of its iterations."""


def test_a_record_that_lacks_an_abstract_method_has_no_instances() -> None:
    with pytest.raises(TypeError, match="abstract method '?steps"):
        WithoutSteps()


def test_a_record_is_frozen() -> None:
    with pytest.raises(AttributeError, match="immutable type: 'Warps'"):
        Warps(2, 1).m = 4  # type: ignore[misc]
