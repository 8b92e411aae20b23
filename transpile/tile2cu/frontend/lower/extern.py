"""The user's own C++ in a kernel: its text, calls of it, and addresses that it is given."""

import re
from collections.abc import Callable
from math import prod

from tile2cu.core.dtype import INT32
from tile2cu.core.expr import Address, Call, Expr, Load, binary, int_const, static_value
from tile2cu.core.program import Buffer, Scope, Store
from tile2cu.core.user_file import UserCode
from tile2cu.frontend import builtins, ir_passes
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.effect import is_effect, perform
from tile2cu.frontend.lower.operand import as_buffer, as_count, as_dtype, as_integer, as_number
from tile2cu.frontend.operators import unknown
from tile2cu.frontend.values import AttrFrame, Opaque, Placed, Reducer, View, describe

_NAME = re.compile(r"(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*(?:<[\w:, <>]*>)?")
_NOTHING = ("handle", "void", "")
_MODES = {1: "r", 2: "w", 3: "rw"}


def import_source(cx: Context, source: object = None) -> None:
    """`T.import_source(text)`: C++ that is before the kernel, as it is written."""
    paste(cx, source, "T.import_source")


def paste(cx: Context, source: object, what: str) -> None:
    """Keep C++ of the user's own, once."""
    if source is None:
        return
    if isinstance(source, Opaque):
        raise unknown(source, f"the text of {what}")
    if not isinstance(source, str):
        raise Fault("T2C-F023", f"{what} takes C++ as a string, not {describe(source)}")
    at = cx.recorder.peek()
    if source.strip() and all(found.text != source for found in cx.recorder.pasted):
        cx.recorder.pasted.append(UserCode(text=source, what=what, span=at.span))


def call_extern(cx: Context, *arguments: object, dtype: object = None) -> object:
    """`T.call_extern(dtype, "name", *args)`, or with `dtype=` at the end: a call of the user's own C++."""
    cx.recorder.require_kernel("T.call_extern")
    if dtype is None:
        dtype, *rest = arguments or (None,)
    else:
        rest = list(arguments)
    name, *values = rest or [None]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Fault("T2C-F023", f"T.call_extern calls a C++ function by its name, not {describe(name)}")
    only_acts = isinstance(dtype, str) and dtype in _NOTHING
    if only_acts and ir_passes.removes(cx, name, tuple(values)):
        return None
    _require_declared(cx, name)
    passed = tuple(_argument(cx, value, name) for value in values)
    if only_acts:
        perform(cx, Call(INT32, f"::{name}", passed))
        return None
    return cx.expression(Call(as_dtype(dtype, "the type of T.call_extern"), f"::{name}", passed))


def _require_declared(cx: Context, name: str) -> None:
    """Where there is C++ of the user's own, or a header that it includes, a name may come from there."""
    word = re.split(r"<", name)[0].rpartition("::")[2]
    texts = [found.text for found in cx.recorder.pasted]
    if name.startswith("__") or any(re.search(rf"\b{word}\b", text) or "#include" in text for text in texts):
        return
    raise Fault(
        "T2C-F009",
        f"no C++ of the file declares `{name}`",
        help="give its text before the call: T.import_source(text), which may be '#include \"file.h\"'",
    )


def _argument(cx: Context, value: object, name: str) -> Expr:
    """A number, an address, or a buffer, which is passed as the address of its first element."""
    if isinstance(value, Buffer):
        return address(cx, value, "rw", f"an argument of {name}")
    return as_number(value, f"an argument of {name}")


def address(cx: Context, base: object, access: str, what: str, extent: int | None = None) -> Address:
    """Where an element is, or the first of a buffer or a slice."""
    if isinstance(base, Placed):
        raise Fault("T2C-F011", f"{what}: the address of an element of a placed tensor is not supported yet")
    if isinstance(base, Load):
        buffer, indices, count = base.buffer, base.indices, 1
        assert isinstance(buffer, Buffer)
    else:
        buffer = base.buffer if isinstance(base, View) else as_buffer(cx, base, what)
        indices = tuple(int_const(0) for _ in buffer.shape)
        if isinstance(base, View):
            starts = (getattr(item, "start", item) for item in base.items)
            indices = tuple(int_const(0) if start is None else as_integer(start, what) for start in starts)
        extents = [static_value(each) for each in buffer.shape]
        count = 1 if None in extents or isinstance(base, View) else prod([int(each or 0) for each in extents])
    if buffer.scope is Scope.FRAGMENT:
        raise Fault(
            "T2C-F023",
            f"{what} is {describe(buffer)}, whose elements are in the registers of many threads",
            help="use T.alloc_local for what one thread holds, or a shared tile",
        )
    return Address(buffer.dtype, buffer, indices, access, extent or count)


def access_ptr(
    cx: Context,
    base: object,
    access_type: object = "r",
    *extents: object,
    offset: object = 0,
    extent: object = None,
    ignore_last_ndim: object = 0,
) -> object:
    """`T.access_ptr(A[i], "rw", n)`: the address of n elements from A[i] on."""
    cx.recorder.require_kernel("T.access_ptr")
    mode = _MODES.get(access_type, access_type) if isinstance(access_type, int) else access_type
    if mode not in _MODES.values():
        raise Fault("T2C-F023", f'`access_type` of T.access_ptr is "r", "w" or "rw", not {describe(access_type)}')
    if len(extents) == 1 and isinstance(extents[0], list | tuple):
        extents = tuple(builtins.items(cx, extents[0]))
    count = prod([as_count(each, "an extent of T.access_ptr", least=1) for each in extents]) if extents else None
    count = count if extent is None else as_count(extent, "`extent` of T.access_ptr", least=1)
    found = address(cx, base, str(mode), "the base of T.access_ptr", count)
    shift = as_integer(offset, "`offset` of T.access_ptr")
    if static_value(shift) == 0:
        return found
    if len(found.indices) != 1:
        raise Fault("T2C-F023", "`offset` of T.access_ptr is for buffers of one dimension", help="index the element")
    return Address(found.dtype, found.buffer, (binary("+", found.indices[0], shift),), found.access, found.extent)


def address_of(cx: Context, base: object) -> object:
    """`T.address_of(A[i])`: where the element is."""
    cx.recorder.require_kernel("T.address_of")
    return address(cx, base, "rw", "what T.address_of takes")


def evaluate(cx: Context, value: object = None) -> None:
    """`T.evaluate(call)`: a call for what it does."""
    if is_effect(value):
        assert isinstance(value, Call)
        perform(cx, value)


def attr(cx: Context, node: object, key: object, value: object = None) -> object:
    """`with T.attr(T.comm_reducer(...), "reduce_scope", ...)`, and of "async_scope"; pragmas are hints."""
    if isinstance(node, Reducer) and key == "reduce_scope":
        return AttrFrame(node)
    if isinstance(key, str) and key.startswith("pragma_"):
        return AttrFrame(None)
    if key == "async_scope":
        return AttrFrame(cx.recorder.reducer, asynchronous=True)
    raise Fault("T2C-F011", f"T.attr with {describe(key)} is not supported yet", help="leave it out")


def dp4a(cx: Context, a: object, b: object, c: object) -> None:
    """`T.dp4a(A[i], B[j], C[k])`: adds the products of 4 int8 from both places to an int32."""
    cx.recorder.require_kernel("T.dp4a")
    places = [address(cx, each, "r", "an operand of T.dp4a", 4) for each in (a, b)]
    if any(place.dtype.name != "int8" for place in places):
        raise Fault("T2C-F018", f"T.dp4a multiplies int8, not {' by '.join(str(place.dtype) for place in places)}")
    target = c if isinstance(c, Load) else None
    if target is None and isinstance(c, Buffer):
        target = Load(c.dtype, c, tuple(int_const(0) for _ in c.shape))
    if target is None or target.dtype != INT32:
        raise Fault("T2C-F023", f"T.dp4a adds to an int32 element, not to {describe(c)}")
    assert isinstance(target.buffer, Buffer)
    cx.recorder.emit(
        Store(
            buffer=target.buffer,
            indices=target.indices,
            value=Call(INT32, "dp4a", tuple(places)),
            op="+",
            **cx.recorder.take().fields,
        )
    )


FUNCTIONS: dict[str, Callable[..., object]] = {
    "import_source": import_source,
    "call_extern": call_extern,
    "access_ptr": access_ptr,
    "address_of": address_of,
    "evaluate": evaluate,
    "attr": attr,
    "dp4a": dp4a,
}
