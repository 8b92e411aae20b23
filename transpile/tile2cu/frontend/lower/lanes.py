"""Short vectors of one thread: T.Ramp, T.Broadcast, T.float16x2 and their kin, T.add2, T.ldg128 and T.stg128.

A vector is its elements: what is done to it is done to each.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce, wraps

from tile2cu.core.dtype import BY_NAME, UINT16, UINT32, DType
from tile2cu.core.expr import Call, Const, Expr, Load, binary, int_const, static_value, walk
from tile2cu.core.program import Buffer, If, Store
from tile2cu.frontend import builtins, operators
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lets import let
from tile2cu.frontend.linear import difference, number_of
from tile2cu.frontend.lower import tiles
from tile2cu.frontend.lower.elementwise import cast, if_then_else, reinterpret
from tile2cu.frontend.lower.operand import as_buffer, as_count, as_dtype, as_integer, as_number
from tile2cu.frontend.placement import guarded
from tile2cu.frontend.values import Builtin, Interval, Lanes, View, as_expr, describe

_MOST = 16  # elements of a vector
_VECTOR = re.compile(r"(?:T\.)?([a-z]+\d*[a-z0-9_]*?)x(2|4|8|16)")
_WORD = 32  # bits


def of(cx: Context, parts: Sequence[object], what: str) -> Lanes:
    """The vector of these elements, in their common type."""
    numbers = tuple(as_number(part, what) for part in parts)
    if not 1 <= len(numbers) <= _MOST:
        raise Fault("T2C-F023", f"{what} has {len(numbers)} elements; a vector has 1 to {_MOST}")
    return Lanes(numbers)


def takes_part(value: object) -> bool:
    return isinstance(value, Lanes)


def lifted(run: Callable[..., object]) -> Callable[..., object]:
    """A function of numbers, also element by element of vectors."""

    @wraps(run)
    def over(cx: Context, *values: object, **named: object) -> object:
        counts = {len(value.parts) for value in (*values, *named.values()) if isinstance(value, Lanes)}
        if not counts:
            return run(cx, *values, **named)
        if len(counts) > 1:
            raise Fault("T2C-F034", f"vectors of {' and '.join(map(str, sorted(counts)))} elements do not go together")
        (count,) = counts
        found = [
            run(cx, *(_at(value, lane) for value in values), **{name: _at(each, lane) for name, each in named.items()})
            for lane in range(count)
        ]
        return of(cx, found, "the result")

    return over


def _at(value: object, lane: int) -> object:
    """What one element of a vector takes of an argument: its own part, or the type of the elements."""
    if isinstance(value, Lanes):
        return value.parts[lane]
    vector = vector_type(value)
    return value if vector is None else vector[0]


def vector_type(value: object) -> tuple[DType, int] | None:
    """The element type and count that `T.float32x4` or its name denotes."""
    name = value.name if isinstance(value, Builtin) else value if isinstance(value, str) else ""
    found = _VECTOR.fullmatch(name)
    return (BY_NAME[found[1]], int(found[2])) if found is not None and found[1] in BY_NAME else None


def operate(cx: Context, op: str, lhs: object, rhs: object) -> object:
    """`lhs op rhs`, where one is a vector."""
    return lifted(lambda cx, a, b: operators.binary(cx.budget, op, a, b))(cx, lhs, rhs)


def ramp(cx: Context, base: object, stride: object, lanes: object) -> object:
    """`T.Ramp(base, stride, n)`: base, base + stride, ...; as an index, so many elements."""
    first, step = as_integer(base, "the base of T.Ramp"), as_integer(stride, "the stride of T.Ramp")
    count = as_count(lanes, "the number of T.Ramp", least=1)
    _require_few(count, "T.Ramp")
    steps = (binary("*", int_const(lane), step) if lane else int_const(0) for lane in range(count))
    return Lanes(tuple(first if static_value(step) == 0 else binary("+", first, step) for step in steps))


def broadcast(cx: Context, value: object, lanes: object) -> object:
    """`T.Broadcast(x, n)`: n times x."""
    count = as_count(lanes, "the number of T.Broadcast", least=1)
    _require_few(count, "T.Broadcast")
    return Lanes((as_number(value, "the value of T.Broadcast"),) * count)


def _require_few(count: int, name: str) -> None:
    if count > _MOST:
        raise Fault("T2C-F023", f"{name} of {count} elements; a vector has at most {_MOST}", help="write T.vectorized")


def shuffle(cx: Context, vectors: object, indices: object) -> object:
    """`T.Shuffle([v, w], [0, 3])`: these of the elements that the vectors have one after the other."""
    given = [
        part for each in builtins.items(cx, vectors) for part in (each.parts if isinstance(each, Lanes) else [each])
    ]
    wanted = [as_count(index, "an index of T.Shuffle") for index in builtins.items(cx, indices)]
    if any(index >= len(given) for index in wanted):
        raise Fault("T2C-F024", f"T.Shuffle takes element {max(wanted)} of {len(given)}")
    found = of(cx, [given[index] for index in wanted], "T.Shuffle")
    return found.parts[0] if len(found.parts) == 1 else found


def element(cx: Context, vector: Lanes, items: tuple[object, ...]) -> object:
    """`v[i]`."""
    if len(items) != 1:
        raise Fault("T2C-F024", f"a vector takes one index, not {len(items)}")
    return extract_lane(cx, vector, items[0])


def extract_lane(cx: Context, vector: object, lane: object) -> object:
    """`T.extract_lane(v, i)`: one element of a vector."""
    if not isinstance(vector, Lanes):
        raise Fault("T2C-F023", f"T.extract_lane takes a vector, not {describe(vector)}")
    at = as_count(lane, "the element of T.extract_lane")
    if at >= len(vector.parts):
        raise Fault("T2C-F024", f"T.extract_lane takes element {at} of {len(vector.parts)}")
    return vector.parts[at]


def _constructor(dtype: DType, count: int, cx: Context, /, *values: object) -> object:
    """`T.float16x2(a, b)`: a vector of these, or of n times one value."""
    parts = [part for value in values for part in (value.parts if isinstance(value, Lanes) else (value,))]
    parts = parts * count if len(parts) == 1 else parts
    if len(parts) != count:
        raise Fault("T2C-F017", f"T.{dtype.name}x{count} takes {count} values, not {len(parts)}")
    return of(cx, [cast(cx, part, dtype) for part in parts], f"T.{dtype.name}x{count}")


def _pairwise(name: str, compute: Callable[..., object], cx: Context, /, *values: object, **options: object) -> object:
    """`T.add2(a, b)` and its kin: of vectors of two elements."""
    wrong = next((value for value in values if not isinstance(value, Lanes) or len(value.parts) != 2), None)
    if wrong is not None or not values:
        raise Fault(
            "T2C-F023",
            f"T.{name} takes vectors of two elements, not {describe(wrong)}",
            help="index a buffer by T.Ramp(i, 1, 2)",
        )
    return lifted(compute)(cx, *values)


def _operator(op: str) -> Callable[..., object]:
    return lambda cx, a, b: operators.binary(cx.budget, op, a, b)


def _multiply_add(cx: Context, a: object, b: object, c: object) -> object:
    return operators.binary(cx.budget, "+", operators.binary(cx.budget, "*", a, b), c)


def _absolute(cx: Context, value: object) -> object:
    number = as_number(value, "T.abs2")
    return Call(number.dtype, "abs", (number,))


def _extreme(name: str) -> Callable[..., object]:
    return lambda cx, a, b: builtins.extreme(cx, name, [a, b])


def load(name: str, bits: int, cx: Context, /, src: object, pred: object = None) -> object:
    """`T.ldg128(A[i])`, `T.lds64(S[i])`: so many bits from an element on, as words of 32; 0 unless `pred`."""
    cx.recorder.require_kernel(f"T.{name}")
    elements: list[object] = list(_elements(cx, name, src, bits))
    if pred is not None:
        elements = [if_then_else(cx, pred, each, 0) for each in elements]
    found = _of_words([as_number(each, "an element") for each in elements])
    return found.parts[0] if len(found.parts) == 1 else found


def store(name: str, bits: int, cx: Context, /, dst: object, value: object, pred: object = None) -> None:
    """`T.stg128(A[i], words)`: writes so many bits from an element on, if `pred`."""
    cx.recorder.require_kernel(f"T.{name}")
    places = _elements(cx, name, dst, bits)
    given_bits = value if isinstance(value, Lanes) else Lanes((as_number(value, f"the value of T.{name}"),))
    if _width(given_bits) != bits:
        raise Fault("T2C-F023", f"T.{name} writes {bits} bits, not {_width(given_bits)}")
    values = _as_elements(given_bits, places[0].dtype)
    given = None if pred is None else as_expr(pred)
    with cx.recorder.block() as body:
        _write_all(cx, places, values)
    if given is not None and static_value(given) is None:
        body = [If(condition=given, then=tuple(body), span=cx.recorder.peek().span)]
    for stmt in body:
        cx.recorder.emit(stmt)


def store_all(cx: Context, target: Lanes | View, value: object, op: str = "") -> None:
    """`A[T.Ramp(i, 1, 4)] op= value`, and of a slice of as many elements: one after the other, by each thread."""
    places = target.parts if isinstance(target, Lanes) else tuple(_of_slice(cx, target))
    values = value.parts if isinstance(value, Lanes) else (as_number(value, "what is stored"),) * len(places)
    if len(values) != len(places):
        raise Fault("T2C-F034", f"{len(values)} elements are stored to {len(places)}")
    if op:
        pairs = zip(places, values, strict=True)
        values = tuple(as_number(operators.binary(cx.budget, op, a, b), "the value") for a, b in pairs)
    _write_all(cx, places, values)


def _write_all(cx: Context, places: Sequence[Expr], values: Sequence[Expr]) -> None:
    """Store elements one after the other; where one is computed from another's place, all are computed first."""
    if any(_is_read(place, value) for place, value in zip(places, values, strict=True)):
        values = kept(cx, "value", Lanes(tuple(values))).parts
    for place, part in zip(places, values, strict=True):
        assert isinstance(place, Load)
        write(cx, place, part)


def _is_read(place: Expr, value: Expr) -> bool:
    """Whether the value is computed from other elements of the buffer that it is stored to."""
    assert isinstance(place, Load)
    return any(isinstance(part, Load) and part.buffer is place.buffer and part != place for part in walk(value))


def _of_slice(cx: Context, view: View) -> list[Load]:
    """The elements of a slice along the last dimension."""
    *leading, last = view.items
    extent = view.buffer.shape[-1]
    if not isinstance(last, Interval) or any(isinstance(item, Interval) for item in leading):
        raise Fault("T2C-F034", "a vector is stored to a slice along the last dimension")
    start = as_integer(0 if last.start is None else last.start, "the start of a slice")
    stop = extent if last.stop is None else as_integer(last.stop, "the end of a slice")
    count = number_of(difference(stop, start))
    if count is None or not 1 <= count <= _MOST:
        raise Fault("T2C-F034", f"a vector is stored to a slice of 1 to {_MOST} elements")
    indices = tuple(as_integer(item, "an index") for item in leading)
    return [
        Load(view.buffer.dtype, view.buffer, (*indices, binary("+", start, int_const(lane)) if lane else start))
        for lane in range(int(count))
    ]


def write(cx: Context, place: Load, value: Expr) -> None:
    """Store one element."""
    assert isinstance(place.buffer, Buffer)
    stmt = Store(buffer=place.buffer, indices=place.indices, value=value, **cx.recorder.take().fields)
    cx.recorder.emit(guarded(place, stmt))


def _elements(cx: Context, name: str, place: object, bits: int) -> list[Load]:
    """The elements of a row from a place on that have so many bits."""
    if isinstance(place, Load):
        first = place
    else:
        buffer = place.buffer if isinstance(place, View) else as_buffer(cx, place, f"the place of T.{name}")
        items = place.items if isinstance(place, View) else (0,) * buffer.rank
        starts = (getattr(item, "start", item) for item in items)
        first = Load(buffer.dtype, buffer, tuple(as_integer(0 if at is None else at, "an index") for at in starts))
    dtype = first.dtype
    if dtype.bits not in (8, 16, 32):
        raise Fault("T2C-F018", f"T.{name} of {dtype}", help="it takes elements of 8, 16 and 32 bits")
    *leading, last = first.indices
    return [
        Load(dtype, first.buffer, (*leading, binary("+", last, int_const(lane)) if lane else last))
        for lane in range(bits // dtype.bits)
    ]


def cast_bits(cx: Context, value: object, dtype: object) -> object:
    """`T.reinterpret(v, T.float16x2)`: the bits of a vector, or a word, as elements of another type."""
    vector = vector_type(dtype)
    if vector is None and not isinstance(value, Lanes):
        return _of_numbers(cx, value, dtype)
    given = value if isinstance(value, Lanes) else Lanes((as_number(value, "the value of T.reinterpret"),))
    kind = vector[0] if vector is not None else as_dtype(dtype, "the type of T.reinterpret")
    bits = _width(given)
    if bits != kind.bits * (vector[1] if vector is not None else 1) or bits % _WORD:
        raise Fault("T2C-F023", f"T.reinterpret of {bits} bits as {describe(dtype)}: they differ in width")
    found = _as_elements(given, kind)
    return found[0] if vector is None else Lanes(tuple(found))


def kept(cx: Context, name: str, value: Lanes) -> Lanes:
    """A vector whose elements are computed now."""
    made_of = tuple(let(cx, f"{name}_{lane}", part) for lane, part in enumerate(value.made_of or value.parts))
    return _of_words(made_of) if value.made_of else Lanes(made_of)


def _width(value: Lanes) -> int:
    """Bits of a vector."""
    return sum(part.dtype.bits for part in value.parts)


def _of_words(elements: Sequence[Expr]) -> Lanes:
    """Elements as a vector of words."""
    return Lanes(tuple(_words(elements)), tuple(elements))


def _as_elements(value: Lanes, dtype: DType) -> list[Expr]:
    """The bits of a vector as elements of a type."""
    made_of = value.made_of or value.parts
    if made_of[0].dtype.bits == dtype.bits:
        return [_bits(part, dtype) for part in made_of]
    return _from_words(_words(value.parts), dtype)


_of_numbers = tiles.lifted(reinterpret)


def _words(parts: Sequence[Expr]) -> list[Expr]:
    """The bits of elements as words of 32, the first element in the lowest bits."""
    bits = parts[0].dtype.bits
    if bits == _WORD:
        return [_bits(part, UINT32) for part in parts]
    each = _WORD // bits
    raw = [Call(UINT32, "cast", (_bits(part, _unsigned(bits)),)) for part in parts]
    shifted = [
        raw[at] if at % each == 0 else binary("<<", raw[at], _number(at % each * bits)) for at in range(len(raw))
    ]
    return [reduce(partial(binary, "|"), shifted[at : at + each]) for at in range(0, len(raw), each)]


def _from_words(words: Sequence[Expr], dtype: DType) -> list[Expr]:
    """Words as elements of a type."""
    if dtype.bits == _WORD:
        return [_bits(word, dtype) for word in words]
    each, narrow = _WORD // dtype.bits, _unsigned(dtype.bits)
    shifted = [binary(">>", word, _number(at * dtype.bits)) if at else word for word in words for at in range(each)]
    return [_bits(Call(narrow, "cast", (part,)), dtype) for part in shifted]


def _bits(value: Expr, dtype: DType) -> Expr:
    """The bits of a value as another type of its width."""
    if isinstance(value, Call) and value.function == "reinterpret":
        value = value.args[0]
    return value if value.dtype == dtype else Call(dtype, "reinterpret", (value,))


def _unsigned(bits: int) -> DType:
    return UINT16 if bits == 16 else BY_NAME["uint8"]


def _number(value: int) -> Const:
    return Const(UINT32, value)


_CONSTRUCTORS = {
    f"{name}x{count}": partial(_constructor, BY_NAME[name], count)
    for name in ("float16", "bfloat16", "float32", "int32", "uint32", "int8", "uint8")
    for count in (2, 4, 8)
}
FUNCTIONS: dict[str, Callable[..., object]] = {
    "Ramp": ramp,
    "Broadcast": broadcast,
    "Shuffle": shuffle,
    "extract_lane": extract_lane,
    "add2": partial(_pairwise, "add2", _operator("+")),
    "sub2": partial(_pairwise, "sub2", _operator("-")),
    "mul2": partial(_pairwise, "mul2", _operator("*")),
    "fma2": partial(_pairwise, "fma2", _multiply_add),
    "max2": partial(_pairwise, "max2", _extreme("max")),
    "min2": partial(_pairwise, "min2", _extreme("min")),
    "abs2": partial(_pairwise, "abs2", _absolute),
    "reinterpret": cast_bits,
    **_CONSTRUCTORS,
    **{f"ldg{bits}": partial(load, f"ldg{bits}", bits) for bits in (32, 64, 128, 256)},
    **{f"lds{bits}": partial(load, f"lds{bits}", bits) for bits in (32, 64, 128)},
    **{f"stg{bits}": partial(store, f"stg{bits}", bits) for bits in (32, 64, 128, 256)},
    **{f"sts{bits}": partial(store, f"sts{bits}", bits) for bits in (32, 64, 128)},
}
