"""A function with `@T.prim_func` as an object: where it is defined, and the arguments of the functions around it."""

from types import FrameType
from typing import Any

from tile2cu.from_function import origin


class PrimFunc:
    """A prim_func of a running program, to be given to `tilelang.compile`. It is read, not run."""

    def __init__(self, function: Any, frame: FrameType | None = None) -> None:
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.origin = origin(function, frame)
        self.attrs = {"global_symbol": function.__name__}

    def script(self, **options: Any) -> str:
        """The function's text in its file: TileLang prints its intermediate representation."""
        import inspect

        return inspect.getsource(self.__wrapped__)

    def show(self, **options: Any) -> None:
        """Prints the function's text."""
        print(self.script())

    def __repr__(self) -> str:
        return f"<prim_func {self.origin.function} of {self.origin.path}>"
