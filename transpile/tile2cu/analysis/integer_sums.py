"""Integer accumulators, and how many values of which type a kernel adds to them."""

from collections.abc import Iterator

from tile2cu.analysis.accesses import overwrites
from tile2cu.analysis.control import operations
from tile2cu.analysis.prelude import around
from tile2cu.core.dtype import DType
from tile2cu.core.program import Buffer, Gemm, Launch, Loop, Reduce, Reduction, Scan, Stmt, walk_stmts
from tile2cu.core.record import Record
from tile2cu.core.span import Span

_NARROW_BITS = 16  # sums of narrower types overflow by a few typical elements


class IntegerSum(Record, frozen=True, kw_only=True):
    """`count` values of at most `largest` each, in magnitude, are added to an accumulator."""

    accumulator: Buffer
    count: int
    largest: int
    span: Span

    @property
    def overflows(self) -> bool:
        """Whether values of the operand's type exist whose sum does not fit the accumulator."""
        return self.count * self.largest > _largest(self.accumulator.dtype)


def overflowing_sums(launch: Launch) -> Iterator[IntegerSum]:
    """The integer accumulators that GEMMs overflow, and those of at most 16 bits that reductions and scans do."""
    for op in operations(launch.body):
        found = _sum_of(op, launch)
        if found is not None and found.overflows:
            yield found


def _sum_of(op: Stmt, launch: Launch) -> IntegerSum | None:
    match op:
        case Gemm(a=a, b=b, c=c) if c.buffer.dtype.is_int:
            largest = _magnitude(a.buffer.dtype) * _magnitude(b.buffer.dtype)
            count = op.mnk[2] * _trips(op, c.buffer, launch)
            return IntegerSum(accumulator=c.buffer, count=count, largest=largest, span=op.span)
        case Reduce(kind=Reduction.SUM | Reduction.ABSSUM) | Scan(kind=Reduction.SUM):
            if not op.dst.dtype.is_int or op.dst.dtype.bits > _NARROW_BITS or not op.src.dtype.is_int:
                return None
            count = op.src.static_shape[op.dim]
            return IntegerSum(accumulator=op.dst, count=count, largest=_magnitude(op.src.dtype), span=op.span)
        case _:
            return None


def _trips(op: Gemm, accumulator: Buffer, launch: Launch) -> int:
    """How often a GEMM adds to its accumulator before it is overwritten, as far as trip counts are constants."""
    if op.clear or op.clear_if is not None:
        return 1
    trips = 1
    for outer in reversed(around(launch.body, op)):
        if isinstance(outer, Loop):
            if any(overwrites(stmt, accumulator) for stmt in walk_stmts(outer.body)):
                break
            trips *= outer.count or 1
    return trips


def _largest(dtype: DType) -> int:
    return int(2 ** (dtype.bits - (dtype.kind == "int")) - 1)


def _magnitude(dtype: DType) -> int:
    """The largest magnitude of a value: that of the least one, where there are negative ones."""
    return int(2 ** (dtype.bits - 1)) if dtype.kind == "int" else _largest(dtype)
