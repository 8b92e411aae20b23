"""The statements that access a tile, with the instruction or the tl:: function of each."""

from tile2cu.analysis.banks import BANK_BYTES, bank_ways
from tile2cu.analysis.effects import own_effects
from tile2cu.analysis.elements import byte_of
from tile2cu.analysis.uses import statements, users
from tile2cu.core.decisions import CALL, INSTRUCTION
from tile2cu.core.layout import SharedLayout
from tile2cu.core.program import Buffer, Copy, Gemm, Scope, Stmt
from tile2cu.core.record import Record
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.vocabulary import NAMESPACE

_CHUNK_BITS = 128
_ROWS = 8  # PTX ISA, "ldmatrix", and "Matrix Descriptor" of wgmma: core matrices of 8 rows of 16 bytes


class TileAccess(Record, frozen=True, kw_only=True):
    """A statement that reads or writes a tile: its line, and what does it, empty of elementwise statements."""

    line: int
    reads: bool
    writes: bool
    by: str

    def __str__(self) -> str:
        verb = "read and written" if self.reads and self.writes else "read" if self.reads else "written"
        return f"{verb} in line {self.line}" + (f" by {self.by}" if self.by else "")


def accesses_of(tile: Buffer, resolved: Resolved) -> tuple[TileAccess, ...]:
    """In the order of the statements, each line once for each of its instructions."""
    found = ((stmt, own_effects(stmt)) for stmt in users(resolved.launch.body, tile))
    accesses = (
        TileAccess(
            line=stmt.span.line,
            reads=any(each.root is tile.memory for each in own.reads),
            writes=any(each.root is tile.memory for each in own.writes),
            by=_by(stmt, resolved),
        )
        for stmt, own in found
    )
    return tuple(dict.fromkeys(accesses))


def _by(stmt: Stmt, resolved: Resolved) -> str:
    match stmt:
        case Gemm():
            return str(resolved.facts.get(stmt, INSTRUCTION) or "")
        case Copy():
            call = resolved.facts.get(stmt, CALL)
            return f"{NAMESPACE}{call}" if call else ""
        case _:
            return ""


def rows_read_together(tile: Buffer, resolved: Resolved) -> int:
    """How many rows of 16 bytes an MMA reads in one pass: 8 by ldmatrix, and of a core matrix of wgmma; 0 of others.

    Those are the reads of 16-bit operands in shared memory; other types are loaded otherwise where they are transposed.
    """
    if tile.scope is not Scope.SHARED or tile.dtype.bits != 16:
        return 0
    gemms = statements(resolved.launch.body, Gemm)
    for gemm in gemms:
        instruction = str(resolved.facts.get(gemm, INSTRUCTION) or "")
        operands = (region.buffer.memory for region in (gemm.a, gemm.b))
        if instruction.startswith(("mma", "wgmma")) and any(each is tile.memory for each in operands):
            return _ROWS
    return 0


def ways(layout: SharedLayout, rows: int, banks: int) -> int:
    """The degree of bank conflicts of the first 16 bytes of so many rows, which are read together."""
    last = len(layout.extents) - 1
    starts = [byte_of(layout, (*(0 for _ in range(last - 1)), row, 0)) for row in range(min(rows, layout.extents[-2]))]
    assert banks * BANK_BYTES >= rows * _CHUNK_BITS // 8, "one pass of all banks"
    return bank_ways(starts, _CHUNK_BITS // 8)
