"""Results that are kept with the data: once for each object, and by identity for further arguments."""

from msgspec.structs import replace

from tile2cu.core.memo import kept
from tile2cu.core.record import Record


class Point(Record, frozen=True):
    x: int


def test_a_result_is_computed_once_for_each_object() -> None:
    asked: list[Point] = []

    @kept
    def doubled(point: Point) -> int:
        asked.append(point)
        return 2 * point.x

    one, same = Point(3), Point(3)
    assert [doubled(one), doubled(one), doubled(same), doubled(replace(one, x=4))] == [6, 6, 6, 8]
    assert [id(each) for each in asked[:2]] == [id(one), id(same)] and len(asked) == 3
    assert one == same and hash(one) == hash(same)


def test_further_arguments_count_by_identity() -> None:
    asked: list[tuple[object, ...]] = []

    @kept
    def together(point: Point, *others: object, by: int = 1) -> int:
        asked.append((*others, by))
        return len(asked)

    one, first, second = Point(1), [1], [1]
    assert together(one) == together(one) == 1
    assert together(one, first) == together(one, first) == 2
    assert together(one, second) == 3 and together(one, first, by=2) == 4
    assert together(one, first) == 2


def test_an_object_that_is_gone_hides_no_other_one() -> None:
    @kept
    def of(point: Point, other: Point) -> int:
        return other.x

    one = Point(0)
    assert [of(one, Point(number)) for number in range(100)] == [*range(100)]
