"""Vector widths of the accesses of an elementwise loop."""

from collections.abc import Callable, Iterator, Mapping
from math import prod

from msgspec.structs import replace

from tile2cu.analysis.accesses import Access, element_accesses, moved_index, parts_of, variables, viewed
from tile2cu.analysis.runs import is_run, of_vector, starts_vector
from tile2cu.analysis.uses import read_in, statements
from tile2cu.core.decisions import DOT_OF_FOUR, IN_REGISTERS, LAYOUT, NOT_VECTORISED, STORE_LAST, TRANSPOSED, VECTOR
from tile2cu.core.dtype import BOOL
from tile2cu.core.expr import (
    Binary,
    Call,
    Expr,
    Load,
    Role,
    Unary,
    Var,
    children,
    is_of_thread,
    quotient_of,
    static_value,
    walk,
)
from tile2cu.core.facts import rejected
from tile2cu.core.layout import Blocked, FragmentLayout, WgmmaAccumulator
from tile2cu.core.program import Atomic, Buffer, If, Let, Parallel, Scope, Stmt, Store
from tile2cu.core.schedule import PackedDot
from tile2cu.rules.engine import Context, Decision, Example, Phase, rule
from tile2cu.rules.vectors.decode_loops import ARITHMETIC, ELEMENTWISE, SPREAD, decoded_tiles
from tile2cu.rules.vectors.packed_dot_products import dot_of_four
from tile2cu.rules.vectors.uniformity import sum_is_multiple, uniform_over_vector

_MOST_BYTES = 128  # of a thread's vectors that wait for their stores: 32 registers
_CHUNK_BYTES = 16  # contiguous under every swizzle: headers/tl/common/shared_tile.h


@rule(
    "vector.loop.vectors",
    phase=Phase.LOOP,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(DOT_OF_FOUR, NOT_VECTORISED, VECTOR),
    source="PTX ISA, 'ld' and 'st', vectors of up to 128 bits",
    examples=(
        Example(
            'S = T.alloc_shared((1024,), "float32")\nfor i in T.Parallel(1024):\n    S[i] = 0.0',
            2,
            "vector",
            "4",
        ),
        Example(
            'S = T.alloc_shared((1024,), "float32")\nfor i in T.Parallel(1024):\n    x = S[i] + 1.0\n    S[i] = x * x',
            2,
            "vector",
            "4",
        ),
        Example(
            'S = T.alloc_shared((1024,), "int32")\nfor i in T.Parallel(1024):\n    at = S[i]\n    X[0, at] = 0.0',
            2,
            "vector",
            "1",
        ),
        Example(
            'S = T.alloc_shared((1024,), "float32")\nfor i in T.Parallel(1024):\n    S[1023 - i] = 0.0',
            2,
            "vector",
            "1",
        ),
        Example(
            'S = T.alloc_shared((1024,), "float32")\n'
            "for i in T.Parallel(1024):\n"
            "    if i < 1000:\n"
            "        S[i] = T.if_then_else(i + bx * 8 >= 12, 1.0, 0.0)",
            2,
            "vector",
            "4",
        ),
        Example(
            'S = T.alloc_shared((1024,), "float32")\nfor i in T.Parallel(1024):\n    if i < 1001:\n        S[i] = 0.0',
            2,
            "vector",
            "1",
        ),
        Example(
            'S = T.alloc_shared((16, 64), "float16")\n'
            "for i, j in T.Parallel(16, 64):\n"
            "    at = bx * 64 + j\n"
            "    tap = at // 24 - 1\n"
            "    S[i, j] = T.if_then_else(tap >= 0, Z[i + tap, at % 24], 0)",
            2,
            "vector",
            "8",
        ),
        Example(
            'S = T.alloc_shared((16, 64), "float16")\n'
            "for i, j in T.Parallel(16, 64):\n"
            "    S[i, j] = Z[(bx * 64 + j) // 20, (bx * 64 + j) % 20]",
            2,
            "vector",
            "1",
        ),
        Example(
            'x = T.alloc_shared((512,), "int8")\n'
            'W = T.alloc_shared((16, 128), "uint8")\n'
            'packed = T.alloc_fragment((16, 128), "uint8")\n'
            'sums = T.alloc_fragment((16, 128), "int32")\n'
            "T.clear(sums)\n"
            "T.copy(W, packed)\n"
            "for i, j in T.Parallel(16, 128):\n"
            "    for part in T.unroll(4):\n"
            '        weight = (T.cast(packed[i, j], "int32") >> (2 * part) & 3) - 1\n'
            '        sums[i, j] += weight * T.cast(x[4 * j + part], "int32")',
            7,
            "dot_of_four",
            "four of `packed` with four of `x`",
        ),
        Example(
            'P = T.alloc_shared((64, 32), "uint8")\n'
            'B = T.alloc_shared((64, 64), "float16")\n'
            'W = T.alloc_fragment((64, 64), "float16")\n'
            'C = T.alloc_fragment((64, 64), "float32")\n'
            "for i, j in T.Parallel(64, 64):\n"
            '    W[i, j] = T.cast(T.cast(P[i, j // 2], "int32") >> (4 * (j % 2)) & 15, "float16")\n'
            "T.clear(C)\n"
            "T.gemm(W, B, C)",
            5,
            "vector",
            "8",
        ),
    ),
)
def loop_vectors(op: Parallel, context: Context) -> Iterator[Decision]:
    """A loop over memory is vectorised where every access is contiguous along the last variable.

    That holds when the last variable occurs with factor 1 in the last index of each access and in no other, and the
    body is arithmetic. Branches and choices must be uniform over a vector: `j < N` is, where vectors divide N. A load
    may also be at the quotient of such an index by a number: one element for the whole vector, as the scale of a group,
    or one for several, as a byte of two weights. Quotients that are uniform over a vector may be values and conditions,
    and the remainder of such a division is an index like the dividend: so a convolution gathers its taps. A sum of four
    products of int8 with 2-bit numbers is one instruction (dp4a). In the register layouts of tensor cores a loop that
    decodes 4-bit numbers takes a thread's elements of 32 columns: it loads 16 bytes together.

    Gives: the elements per vector, 1 for none; the packed dot product.
    """
    layout = context.facts.get(op, LAYOUT)
    if layout is None:
        return
    in_memory = is_over_memory(op)
    dot = _dot(op, layout, context)
    if dot is not None and isinstance(layout, Blocked):
        yield op, VECTOR, layout.vector
        yield op, DOT_OF_FOUR, dot
        return
    if decoded_tiles(op, layout, context.bounds):
        yield op, VECTOR, SPREAD
        return
    because, edit = _why_single(op, layout, context)
    yield op, VECTOR, layout.vector if in_memory and not because and isinstance(layout, Blocked) else 1
    if because and in_memory:
        yield rejected(op, NOT_VECTORISED, because, edit)


def takes_adjacent(op: Parallel, layout: FragmentLayout, context: Context) -> bool:
    """Whether a loop with this layout is faster where adjacent lanes take adjacent elements, one each.

    So it is where it accesses elements of shared memory one by one, which are then in different banks, and where it
    adds to tensors atomically. Of other tensors a thread loads its own adjacent elements in one sector.
    """
    if _dot(op, layout, context) is not None or decoded_tiles(op, layout, context.bounds):
        return False
    adds = any(stmt.buffer.scope is Scope.GLOBAL for stmt in statements(op.body, Atomic))
    scopes = {access.buffer.scope for access in element_accesses(op.body)}
    disjoint = adds or (Scope.SHARED in scopes and Scope.GLOBAL not in scopes)
    return disjoint and _why_single(op, layout, context) != ("", "")


def is_over_memory(op: Parallel) -> bool:
    return any(access.buffer.scope in (Scope.GLOBAL, Scope.SHARED) for access in element_accesses(op.body))


def _dot(op: Parallel, layout: FragmentLayout, context: Context) -> PackedDot | None:
    """The packed dot product that a loop computes, if its layout allows it."""
    return dot_of_four(op, context) if isinstance(layout, Blocked) and layout.vector % 4 == 0 else None


@rule(
    "vector.loop.store-last",
    phase=Phase.LOOP,
    on=Parallel,
    reads=(LAYOUT, VECTOR),
    writes=(STORE_LAST,),
    source="measured on an H200: benchmarks/RESULTS.md, weights of 4 bits",
    examples=(
        Example(
            'S = T.alloc_shared((64, 64), "float16")\n'
            'P = T.alloc_shared((64, 64), "float16")\n'
            "for i, j in T.Parallel(64, 64):\n"
            '    S[i, j] = P[i, j] * T.cast(2.0, "float16")',
            3,
            "store_last",
            "True",
        ),
    ),
)
def store_last(op: Parallel, context: Context) -> Iterator[Decision]:
    """A vectorised loop from one shared tile to another stores after all vectors are computed, if registers hold them.

    The compiler does not move a load over a store that may alias it: the loads of each vector would wait for the stores
    of the vector before.

    Gives: True where the loop's last statement stores a tile that it does not read.
    """
    vector = context.facts.get(op, VECTOR) or 1
    layout = context.facts.get(op, LAYOUT)
    *before, last = op.body
    if vector == 1 or not isinstance(layout, Blocked) or not isinstance(last, Store):
        return
    if not all(isinstance(stmt, Let) for stmt in before):
        return
    tile, read = last.buffer, read_in(op.body)
    whole = tile.scope is Scope.SHARED and tile.rank == 2 and last.indices == op.vars and not last.op
    several = vector < layout.registers and tile.dtype.bytes_of(layout.registers) <= _MOST_BYTES
    each_once = prod(layout.threads) == layout.block_threads
    disjoint = tile not in read and tile.of is None and not viewed(context.launch, tile)
    if whole and several and each_once and disjoint and any(other.scope is Scope.SHARED for other in read):
        yield op, STORE_LAST, True


@rule(
    "vector.loop.in-registers",
    phase=Phase.LOOP,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(IN_REGISTERS,),
    source="measured on an H200: benchmarks/RESULTS.md, RMSNorm",
    examples=(
        Example(
            'x = T.alloc_fragment((8, 72), "float32")\n'
            'squares = T.alloc_fragment((8, 72), "float32")\n'
            'total = T.alloc_fragment((8,), "float32")\n'
            "for i, j in T.Parallel(8, 72):\n"
            "    squares[i, j] = x[i, j] * x[i, j]\n"
            "T.reduce_sum(squares, total, dim=1)",
            4,
            "in_registers",
            "True",
        ),
    ),
)
def in_registers(op: Parallel, context: Context) -> Iterator[Decision]:
    """Idle lanes run a loop over registers alone, too: nothing reads the elements that they compute.

    A branch around the loop would separate it from the sum after it: the compiler could not contract them to FMAs, and
    would keep products and sums in registers.

    Gives: True for arithmetic without integer quotients that stores each element at its own index.
    """
    layout = context.facts.get(op, LAYOUT)
    if not isinstance(layout, Blocked) or not layout.has_idle_lanes:
        return
    plain = all(_simple(stmt, _never) and not _divides_integers(stmt) for stmt in statements(op.body, Stmt))
    registers = all(access.buffer.scope is Scope.FRAGMENT for access in element_accesses(op.body))
    own_positions = all(stmt.indices == op.vars for stmt in statements(op.body, Store))
    if plain and registers and own_positions:
        yield op, IN_REGISTERS, True


def _divides_integers(stmt: Stmt) -> bool:
    if isinstance(stmt, Store) and stmt.op == "/" and not stmt.buffer.dtype.is_float:
        return True
    parts = parts_of((stmt,))
    return any(isinstance(part, Binary) and part.op in ("/", "//", "%") and not part.dtype.is_float for part in parts)


@rule(
    "vector.loop.transposed",
    phase=Phase.LOOP,
    on=Parallel,
    reads=(LAYOUT,),
    writes=(TRANSPOSED,),
    source="PTX ISA, 'Warp Level Matrix Load Instruction: ldmatrix', .trans",
    examples=(
        Example(
            'X = T.alloc_shared((64, 64), "float16")\n'
            'B = T.alloc_shared((64, 64), "float16")\n'
            'A = T.alloc_fragment((64, 64), "float16")\n'
            'C = T.alloc_fragment((64, 64), "float32")\n'
            "for ko in T.Pipelined(4, num_stages=2):\n"
            "    T.copy(Y[0, ko * 64], X)\n"
            "    T.copy(Y[64, ko * 64], B)\n"
            "    for i, j in T.Parallel(64, 64):\n"
            "        A[i, j] = X[j, i]\n"
            "    T.gemm(A, B, C)",
            8,
            "transposed",
            "True",
            target="cuda:sm_90a",
        ),
    ),
)
def transposed(op: Parallel, context: Context) -> Iterator[Decision]:
    """A loop that only copies a shared tile, rows to columns, to wgmma's register operand is a copy by ldmatrix.trans.

    One instruction replaces eight loads of single elements and their packing. Further computation on the elements must
    be in a loop of its own.

    Gives: True for such a loop over all of both tiles, of 16-bit elements of one type.
    """
    match op.body:
        case (Store(op="", value=Load(buffer=Buffer(scope=Scope.SHARED) as tile, indices=read)) as store,):
            to = store.buffer
        case _:
            return
    layout = context.facts.get(to, LAYOUT)
    if not isinstance(layout, WgmmaAccumulator) or len(op.vars) != 2 or store.indices != op.vars:
        return
    whole = to.static_shape == tile.static_shape[::-1] == tuple(static_value(extent) for extent in op.extents)
    swapped = read == op.vars[::-1] and tile.of is None
    matrices = tile.dtype == to.dtype and tile.dtype.bits == 16 and to.static_shape[1] % (16 * layout.along_n) == 0
    if whole and swapped and matrices and to.static_shape[0] % 8 == 0:
        yield op, TRANSPOSED, True


def _why_single(op: Parallel, layout: FragmentLayout, context: Context) -> tuple[str, str]:
    """(why, edit) of a loop that is not vectorised; empty where it is."""
    last = op.vars[-1].name
    if not isinstance(layout, Blocked):
        return "its layout is that of a fragment whose elements per thread are not contiguous in memory", ""
    if layout.vector == 1:
        return (
            "it has too few elements for the threads, or an odd number of them",
            "use fewer threads or larger tiles",
        )

    def seen(expr: Expr) -> Expr:
        return of_vector(expr, op.vars[-1], layout.vector, context.bounds)

    def of_vectors(condition: Expr) -> bool:
        return uniform_over_vector(seen(condition), op.vars[-1], layout.vector, context.bounds)

    body = tuple(statements(op.body, Stmt))
    shared = {
        stmt.var
        for stmt in body
        if isinstance(stmt, Let) and is_run(stmt.value, op.vars[-1], layout.vector, context.bounds)
    }
    moved = {stmt.var for stmt in body if isinstance(stmt, Let) and moved_index(stmt, op.vars[-1])} - shared
    for stmt in body:
        if not _simple(stmt, of_vectors) and not (isinstance(stmt, Let) and stmt.var in moved | shared):
            return (
                f"line {stmt.span.line} is not plain arithmetic of elements",
                "move branches and indices out of the loop",
            )
    values = (
        stmt.value
        for stmt in body
        if isinstance(stmt, Let | Store)
        and not _is_condition(stmt)
        and not (isinstance(stmt, Let) and stmt.var in shared)
    )
    used = {part for value in values for part in _outside_indices(value)}
    if moved & used:
        return "an index with a name is also a value", "write the index where it is used"
    for access in element_accesses(op.body):
        expanded = replace(access, indices=tuple(map(seen, access.indices)))
        *_, at = access.indices
        alone = at in moved or not moved & variables(*_indices_that_move(access.indices, expanded.indices, op.vars[-1]))
        if not alone or not _consecutive(expanded, op.vars, layout.vector, context):
            because = f"`{access.buffer.name}` in line {access.span.line} is not contiguous along `{last}`"
            return because, f"let `{last}` be a term of the last index of `{access.buffer.name}`"
    return "", ""


def _indices_that_move(indices: tuple[Expr, ...], seen: tuple[Expr, ...], last: Var) -> Iterator[Expr]:
    """The indices that differ between elements of a vector, without remainders."""
    for index, as_seen in zip(indices, seen, strict=True):
        is_remainder = isinstance(index, Binary) and index.op == "%" and as_seen != index
        if last in walk(as_seen) and not is_remainder:
            yield index


def _outside_indices(expr: Expr) -> Iterator[Var]:
    """The variables that an expression computes with, without those of its loads' indices and its conditions."""
    if isinstance(expr, Var):
        yield expr
    if not isinstance(expr, Load):
        for child in _without_condition(expr):
            yield from _outside_indices(child)


def _without_condition(expr: Expr) -> tuple[Expr, ...]:
    return children(expr)[1 if _is_choice(expr) else 0 :]


def _is_choice(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == "if_then_else"


def _is_condition(stmt: Stmt) -> bool:
    """Whether it evaluates a condition, or names one."""
    return isinstance(stmt, If) or (isinstance(stmt, Let) and stmt.var.dtype is BOOL)


def _never(condition: Expr) -> bool:
    return False


_UniformOverVector = Callable[[Expr], bool]  # of a condition: whether it is uniform over a vector


def _simple(stmt: Stmt, of_vectors: _UniformOverVector) -> bool:
    """Whether a statement's values are arithmetic on vectors, and its condition is uniform over vectors."""
    match stmt:
        case Store():
            return stmt.op in ("", "+", "-", "*", "/") and _vector_value(stmt.value, of_vectors)
        case If():
            return not stmt.once and of_vectors(stmt.condition)
        case Let() if _is_condition(stmt):
            return of_vectors(stmt.value)
        case Let():
            return _vector_value(stmt.value, of_vectors)
        case _:
            return False


def _vector_value(expr: Expr, of_vectors: _UniformOverVector) -> bool:
    match expr:
        case Load():
            return True
        case Call() if _is_choice(expr):
            return of_vectors(expr.args[0]) and all(_vector_value(each, of_vectors) for each in expr.args[1:])
        case Call() if is_of_thread(expr):
            return False
        case Call() if expr.function not in ELEMENTWISE and children(expr):
            return False
        case Unary(op="not"):
            return False
        case Binary() if expr.op not in ARITHMETIC or (expr.op in ("//", "%") and not _plain_quotient(expr)):
            return False
        case _:
            return all(_vector_value(child, of_vectors) for child in children(expr))


def _plain_quotient(expr: Binary) -> bool:
    """Whether division by the number rounds in C++ as in Python: of an index, or of an unsigned value."""
    divisor = static_value(expr.rhs)
    signless = expr.dtype.kind == "uint" or (isinstance(expr.lhs, Var) and expr.lhs.role is Role.PARALLEL)
    return signless and divisor is not None and divisor > 0


def _consecutive(access: Access, variables: tuple[Var, ...], vector: int, context: Context) -> bool:
    """Whether a step of the last variable is a step of one element, and vectors start at multiples of `vector`."""
    last = variables[-1]
    if access.buffer.scope is Scope.FRAGMENT:
        return True
    if access.buffer.scope is Scope.LOCAL or any(last in walk(index) for index in access.indices[:-1]):
        return False
    quotient = quotient_of(access.indices[-1], last)
    if quotient is not None:
        return not access.is_store and _in_step(access.buffer, *quotient, last, vector, context)
    offset = context.bounds.linear(access.indices[-1])
    terms = dict(offset.terms)
    if terms.pop(last, 0) != 1:
        return last not in walk(access.indices[-1]) and not access.is_store
    if any(last in walk(atom) for atom in terms):
        return False
    return access.buffer.scope is not Scope.SHARED or _in_chunks(access.buffer, offset.constant, terms, vector, context)


def _in_step(buffer: Buffer, divided: Expr, divisor: int, last: Var, vector: int, context: Context) -> bool:
    """Whether vectors start at multiples of their size in the dividend, and its quotients come in equal runs."""
    if not starts_vector(divided, last, vector, context.bounds):
        return False
    if divisor % vector == 0:
        return True
    row = buffer.static_shape[-1] if buffer.scope is Scope.SHARED else 0
    return vector % divisor == 0 and row % (vector // divisor) == 0


def _in_chunks(tile: Buffer, constant: int, terms: Mapping[Expr, int], vector: int, context: Context) -> bool:
    """Whether vectors of a shared tile's row with such starts are always within one of its 16-byte chunks."""
    in_one = tile.rank == 1 or tile.dtype.bytes_of(vector) <= _CHUNK_BYTES  # a tile of one row has no swizzle
    if tile.static_shape[-1] % vector or not in_one:
        return False
    return sum_is_multiple(vector, constant, terms, context.bounds)
