"""Reductions of fragments: of rows, of columns, to one value."""

from tile2cu.core.layout import Blocked, FragmentLayout, Replicated, Slice, slice_of
from tile2cu.core.program import Scope
from tile2cu.core.record import Record
from tile2cu.core.shared_memory import workspace_name
from tile2cu.plan import ops
from tile2cu.styles.cute import vocabulary as words
from tile2cu.styles.cute.expressions import CutePrinter
from tile2cu.styles.cute.fragments import ACCUMULATORS, Fragments, sharing
from tile2cu.styles.cute.support import unsupported
from tile2cu.styles.cute.types import is_half


class Reductions(Record, frozen=True):
    """Prints reductions."""

    printer: CutePrinter
    fragments: Fragments

    def text(self, op: ops.Reduce) -> str:
        """A reduction of a fragment's rows or columns."""
        span, src, dst = op.source.span, op.src, op.dst
        if src.scope is not Scope.FRAGMENT or dst.scope is not Scope.FRAGMENT:
            raise unsupported("a reduction of a tile in shared memory", span)
        by_lanes = not op.thread_local and _is_among_threads(self.fragments.layout(src), op.dim)
        if dst.dtype.bits != 32 and (by_lanes or not is_half(dst.dtype)):
            raise unsupported(f"a reduction among threads to {dst.dtype}", span)
        layout, result = self.fragments.layout(src), self.fragments.layout(dst)
        if not isinstance(layout, ACCUMULATORS | Blocked) or (isinstance(layout, Blocked) and layout.rows > 1):
            raise unsupported("a reduction of a fragment that is no tile", span)
        partition, kept = self.fragments.partition(layout, span), 1 - op.dim
        source, at, rows_at = self.printer.names(src.name), "", ""
        if src.rank == 1:
            if not isinstance(result, Replicated):
                raise unsupported("a reduction to a value that not every thread holds", span)
            at = f"{words.ONE_ROW}({self.fragments.at(partition)})" if partition.overhangs else ""
            source, rows_at, kept = f"{words.ONE_ROW}({source})", "make_identity_tensor(Shape<_1, _1>{})", 0
        else:
            self._check_reduced(op, layout, result)
            source = self.fragments.rowcol(source)
            if op.parts > 1 or partition.overhangs:
                at = self.fragments.at_rowcol(partition)
            if src.rank == 2 and op.dim == 0:
                source, at = f"{words.COLROW}({source})", f"{words.COLROW}({at})"
            rows_at = at
        kind = words.REDUCTIONS[op.kind.value]
        kind = f"{words.OR_NAN}<{kind}>" if op.keeps_nan else kind
        among = [kind, sharing(layout, op.dim, thread_local=op.thread_local)]
        arguments = [source, self.printer.names(dst.name)]
        if op.parts > 1:
            among += [str(kept)] * (kept == 1)
            arguments += [self.printer.names(workspace_name(dst.name)), rows_at]
        arguments += [f"{words.WITHIN}({at}, {partition.shape})"] * partition.overhangs
        name = words.ACCUMULATE_ROWS if op.accumulates else words.REDUCE_ROWS
        return f"{name}<{', '.join(among)}>({', '.join(arguments)});"

    def _check_reduced(self, op: ops.Reduce, layout: FragmentLayout, result: FragmentLayout) -> None:
        """Errors: T2C-E034 where the results are not those of a thread's rows or columns."""
        if op.src.rank == 2:
            is_held = isinstance(result, Slice) and slice_of(layout, (1 - op.dim,)) == result
        else:  # a thread's rows are those of the result, in the same order
            assert isinstance(layout, Blocked)
            of_rows = Blocked(layout.extents[:-1], layout.threads[:-1], 1, layout.block_threads)
            is_held = op.dim == op.src.rank - 1 and layout.threads[-1] == 1 and result == of_rows
        if not is_held:
            raise unsupported("a reduction to values that are no rows or columns of the fragment", op.source.span)


def _is_among_threads(layout: FragmentLayout, dim: int) -> bool:
    """Whether several threads share a row."""
    along = layout.along(dim)
    return along.lanes * along.warps > 1
