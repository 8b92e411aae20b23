"""The tile language's names as Python objects, for annotations, defaults and decorators of files that are run.

What they mean is read from the file's text; as objects they only exist, and say so where a value is asked of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tile2cu.core.dtype import BY_NAME
from tile2cu.core.dtype import DType as StaticType
from tile2cu.core.errors import Tile2CuError
from tile2cu.tilelang.notes import once


class Symbol:
    """A name of the tile language or of TileLang, or an expression of such names. It has no value."""

    def __init__(self, text: str, name: str = "") -> None:
        self._text = text
        self._name = name

    @property
    def tile2cu_name(self) -> str:
        """The qualified name that the front end looks up, empty for an expression."""
        return self._name

    def __repr__(self) -> str:
        return f"<{self._text}: read by tile2cu, not run>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return Symbol(f"{self._text}.{name}", f"{self._name}.{name}" if self._name else "")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if self._name and not self._name.startswith("tilelang.language."):
            once(f"{self._name} has no counterpart, and its call no effect; docs/migrating.md")
        return Symbol(f"{self._text}(...)")

    def __getitem__(self, index: Any) -> Any:
        return Symbol(f"{self._text}[...]")

    def _combined(self, other: Any = None, *more: Any) -> Any:
        return Symbol(f"an expression of {self._text}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _combined
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __invert__ = _combined
    __lshift__ = __rshift__ = __and__ = __or__ = __xor__ = __lt__ = __le__ = __gt__ = __ge__ = _combined

    def _no_value(self, *arguments: Any) -> NoReturn:
        raise Tile2CuError(
            "T2C-C031",
            f"`{self._text}` has no value in Python",
            help="kernels are read from their text; docs/migrating.md lists what the rest of a program can call",
        )

    __bool__ = __iter__ = __len__ = __int__ = __float__ = __index__ = _no_value


def others(module: str) -> Callable[[str], Any]:
    """A `__getattr__` for one of TileLang's modules: its names without a counterpart, as symbols."""
    qualified = module.removeprefix("tile2cu.")

    def found(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Symbol(f"{qualified}.{name}", f"{qualified}.{name}")

    return found


class DType(str):
    """An element type, by its name: equal to the text. `bits` of one element."""

    bits: int
    tile2cu_dtype: StaticType

    def __new__(cls, value: Any = "float32") -> DType:
        name = str(value).removeprefix("torch.")
        if name not in BY_NAME:
            raise Tile2CuError("T2C-F018", f"there is no element type `{name}`", help=f"there are {', '.join(BY_NAME)}")
        found = super().__new__(cls, name)
        found.tile2cu_dtype = BY_NAME[name]
        found.bits = BY_NAME[name].bits
        return found

    @property
    def tile2cu_name(self) -> str:
        """The qualified name that the front end looks up."""
        return f"tilelang.language.{self}"

    @property
    def lanes(self) -> int:
        """The elements of one value: one."""
        return 1

    @property
    def itemsize(self) -> int:
        """Bytes per element, at least one."""
        return max(self.bits // 8, 1)

    @property
    def bytes(self) -> int:
        """Bytes per element, at least one."""
        return self.itemsize

    def as_torch(self) -> Any:
        """torch's type of that name; two elements of 4 bits are one int8."""
        import torch

        name = self.tile2cu_dtype.name
        return torch.int8 if self.bits == 4 else getattr(torch, name)

    def __call__(self, value: Any = 0) -> Any:
        """A number of this type in Python."""
        return value if isinstance(value, Symbol) else float(value) if "float" in self else int(value)
