"""What statements read and write."""

from tile2cu.analysis.accesses import own_accesses
from tile2cu.core.dtype import FLOAT32
from tile2cu.core.expr import Load, int_const
from tile2cu.core.program import Buffer, Scope, Store
from tile2cu.core.span import Span

HERE = Span("kernel.py", 1, 1, 2)


def buffer(name: str, extent: int) -> Buffer:
    return Buffer(name=name, shape=(int_const(extent),), dtype=FLOAT32, scope=Scope.GLOBAL, span=HERE)


def test_what_a_statement_accesses_is_found_once() -> None:
    a, b = buffer("A", 4), buffer("B", 4)
    store = Store(span=HERE, buffer=a, indices=(int_const(1),), value=Load(FLOAT32, b, (int_const(2),)))
    first = own_accesses(store)
    assert [(access.buffer.name, access.is_store) for access in first] == [("B", False), ("A", True)]
    assert own_accesses(store) is first
    assert store == Store(span=HERE, buffer=a, indices=(int_const(1),), value=Load(FLOAT32, b, (int_const(2),)))


def test_buffers_of_one_name_are_told_apart() -> None:
    assert len({buffer("A", 4), buffer("A", 8), buffer("A", 4)}) == 2
