"""Sizes that must be multiples since a tensor has a quotient of them as its extent: `(N, K // 2)` by `(M, K)`."""

from collections.abc import Iterator

from tile2cu.core.expr import Binary, static_value
from tile2cu.core.program import Buffer, Program
from tile2cu.core.schedule import Multiple, strictest


def whole_quotients(program: Program) -> tuple[tuple[Buffer, Binary, int], ...]:
    """The tensors with an extent that is another tensor's extent divided by a number, that extent, and the number.

    A remainder would be elements of the other tensor for which this one has none, so that a launcher rejects it.
    """
    tensors = [each for each in program.params if isinstance(each, Buffer)]
    extents = {extent for tensor in tensors for extent in tensor.shape if static_value(extent) is None}
    return tuple(
        (tensor, extent, divisor)
        for tensor in tensors
        for extent, divisor in _quotients(tensor)
        if extent.lhs in extents and divisor > 1
    )


def whole_multiples(program: Program) -> tuple[Multiple, ...]:
    """The same as conditions on the sizes, one for each."""
    return strictest(Multiple(extent.lhs, divisor) for _, extent, divisor in whole_quotients(program))


def _quotients(tensor: Buffer) -> Iterator[tuple[Binary, int]]:
    for extent in dict.fromkeys(tensor.shape):
        if isinstance(extent, Binary) and extent.op == "//" and static_value(extent) is None:
            divisor = static_value(extent.rhs)
            if isinstance(divisor, int):
                yield extent, divisor
