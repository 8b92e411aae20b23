"""Several specialisations of one kernel under one C entry, as data.

From Python:

    Dispatch(name="gemm", file="gemm.py", entries=(
        Entry(name="hopper", target="cuda:sm_90a", bindings={"block_N": 256}, when="M >= 128", measured="..."),
        Entry(name="any"),
    ))

The same as a table of TOML, for `[[tool.tile2cu.dispatch]]` in pyproject.toml:

    name = "gemm"
    file = "kernels/gemm.py"
    entries = [
        {name = "hopper", target = "cuda:sm_90a", bindings = {block_N = 256}, when = "M >= 128", measured = "..."},
        {name = "any"},
    ]
"""

import ast
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from msgspec import field

from tile2cu.core.dtype import INT32
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import COMPARISONS, Expr, Role, Unary, Var, binary, int_const
from tile2cu.core.record import Record

_FORM = "a table with `name`, `file` and `entries`"


class Entry(Record, frozen=True, kw_only=True):
    """One specialisation: a kernel, its target and bindings, and the condition under which it runs.

    `name` identifies it: its C function is DISPATCH_NAME. `bindings` are values for the arguments of the kernel's
    factory. `when` is a condition on the sizes and integer arguments, in Python's notation; empty for always.
    `measured` states the measurement that justifies the choice: it is a comment of the emitted source. `file` and
    `kernel` are the Dispatch's where they are empty.
    """

    name: str
    target: str = "cuda:sm_80"
    bindings: Mapping[str, object] = field(default_factory=dict)
    when: str = ""
    measured: str = ""
    file: str = ""
    kernel: str = ""


class Dispatch(Record, frozen=True, kw_only=True):
    """An entry over several kernels that compute the same function: the first that accepts a call is launched.

    `name` is the C function. `entries` are tried in order; the last that accepts any call is the fallback.
    """

    name: str
    entries: tuple[Entry, ...]
    file: str = ""
    kernel: str = ""

    def __post_init__(self) -> None:
        names = [entry.name for entry in self.entries]
        for name in (self.name, *names):
            if not name.isidentifier() or not name.isascii():
                raise Tile2CuError("T2C-E020", f"`{name}` cannot be part of a C function's name")
        if not names or len(set(names)) < len(names):
            raise Tile2CuError("T2C-E020", f"the entries of `{self.name}` need distinct names")

    def source(self, entry: Entry) -> tuple[str, str | None]:
        """(file, kernel or None) of an entry. Raises T2C-E020 when no file is given."""
        file = entry.file or self.file
        if not file:
            raise Tile2CuError("T2C-E020", f"the entry `{entry.name}` of `{self.name}` names no Python file")
        return file, (entry.kernel or self.kernel) or None


def dispatch_of(table: Mapping[str, Any]) -> Dispatch:
    """The Dispatch in a table of TOML or JSON. Raises T2C-E020 that names the field."""
    given = _fields(table, Dispatch, "a dispatch")
    entries = given.pop("entries", ())
    if not isinstance(entries, list | tuple):
        raise Tile2CuError("T2C-E020", "`entries` of a dispatch is a list of tables", help=f"write {_FORM}")
    return Dispatch(entries=tuple(Entry(**_fields(entry, Entry, "an entry")) for entry in entries), **given)


def _fields(table: object, kind: type[Record], what: str) -> dict[str, Any]:
    """The fields of a table, known by name and of the right type."""
    if not isinstance(table, Mapping):
        raise Tile2CuError("T2C-E020", f"{what} is a table, not {type(table).__name__}", help=f"write {_FORM}")
    known = list(kind.__struct_fields__)
    for name, value in table.items():
        if name not in known:
            raise Tile2CuError("T2C-E020", f"{what} has no field `{name}`", help=f"it has {', '.join(known)}")
        if name not in ("bindings", "entries") and not isinstance(value, str):
            raise Tile2CuError("T2C-E020", f"`{name}` of {what} is text, not {value!r}")
    if not isinstance(table.get("bindings", {}), Mapping):
        raise Tile2CuError(
            "T2C-E020", f"`bindings` of {what} is a table", help='write {block_M = 64, dtype = "float16"}'
        )
    if "name" not in table:
        raise Tile2CuError("T2C-E020", f"{what} needs a `name`", help=f"write {_FORM}")
    return dict(table)


_OPERATORS: Mapping[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.And: "and", ast.Or: "or",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def condition(entry: Entry, names: Mapping[str, Var]) -> Expr | None:
    """An entry's `when`, over the sizes and integer arguments in `names`; None for always.

    Raises T2C-E021 when it is more than comparisons and integer arithmetic of them.
    """
    if not entry.when.strip():
        return None
    reader = _Condition(entry, names)
    try:
        tree = ast.parse(entry.when.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise reader.cause("is no Python expression") from error
    found = reader.lower(tree.body)
    if getattr(found, "op", "") not in COMPARISONS:
        raise reader.cause("is a number, not a comparison")
    return found


class _Condition(Record, frozen=True):
    """Reads the `when` of one entry."""

    entry: Entry
    names: Mapping[str, Var]

    def lower(self, node: ast.expr) -> Expr:
        match node:
            case ast.Name():
                return self._name(node.id)
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return int_const(value)
            case ast.UnaryOp(op=ast.USub()):
                return Unary(INT32, "-", self.lower(node.operand))
            case ast.BinOp() if type(node.op) in _OPERATORS:
                return binary(_OPERATORS[type(node.op)], self.lower(node.left), self.lower(node.right))
            case ast.BoolOp():
                return self._joined(_OPERATORS[type(node.op)], map(self.lower, node.values))
            case ast.Compare() if all(type(op) in _OPERATORS for op in node.ops):
                sides = [self.lower(side) for side in (node.left, *node.comparators)]
                parts = zip(node.ops, sides, sides[1:], strict=False)
                return self._joined("and", (binary(_OPERATORS[type(op)], a, b) for op, a, b in parts))
        raise self.cause("is more than comparisons and integer arithmetic")

    def _name(self, name: str) -> Var:
        if name not in self.names:
            raise self.cause(f"uses `{name}`, which is no size or integer argument of the kernel")
        return self.names[name]

    def _joined(self, op: str, parts: Iterable[Expr]) -> Expr:
        return reduce(lambda a, b: binary(op, a, b), parts)

    def cause(self, what: str) -> Tile2CuError:
        return Tile2CuError(
            "T2C-E021",
            f"the condition of the entry `{self.entry.name}` {what}",
            notes=(Note(f"it is `{self.entry.when}`"),),
            help=f"write comparisons and integer arithmetic of {', '.join(self.names)}",
        )


def size(name: str) -> Var:
    """The variable of a run-time size."""
    return Var(INT32, name, Role.SIZE)
