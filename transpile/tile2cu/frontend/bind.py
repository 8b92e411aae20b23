"""Values for open sizes from a call of the factory in the file's host part."""

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.span import Span
from tile2cu.frontend import execute, host
from tile2cu.frontend.context import Bindings, Context
from tile2cu.frontend.fault import Exhausted
from tile2cu.frontend.limits import MAX_STEPS, Budget
from tile2cu.frontend.parse import SourceFile
from tile2cu.frontend.values import Arguments, Function, FunctionKind, Opaque

MAX_HOST_STEPS = 50_000


class Calls:
    """The arguments of the first call of a factory in its file: `found` is filled when they are first asked for."""

    def __init__(self, source: SourceFile, budget: Budget, name: str) -> None:
        self.found: dict[str, tuple[object, Span]] = {}
        self._source = source
        self._budget = budget
        self._name = name
        self._read = False

    def read(self) -> None:
        """Run the host part as far as it is static, and note what the factory is called with."""
        if self._read:
            return
        self._read = True
        budget = Budget(steps=max(self._budget.steps, MAX_STEPS - MAX_HOST_STEPS))
        cx = Context(self._source, budget, Bindings({}), self._call)
        try:
            host.module_scope(cx, main=True)
        except Exhausted:
            pass
        except Tile2CuError as error:
            if error.code != host.FATAL:
                raise

    def _call(self, cx: Context, function: Function, arguments: Arguments) -> object:
        """Calls on the host: the kernel's arguments are noted, other functions are run as far as possible."""
        if function.name == self._name and function.env.parent is None:
            self._note(cx, function, arguments)
            return Opaque(function.name, cx.here)
        if function.kind is not FunctionKind.PLAIN:
            return Opaque(function.name, cx.here)
        execute.enter_call(cx, function)
        try:
            return host.call_host(cx, function, arguments)
        finally:
            cx.budget.calls -= 1

    def _note(self, cx: Context, function: Function, arguments: Arguments) -> None:
        assert cx.here is not None
        for name, value in execute.bind_loosely(function, arguments).items():
            if not isinstance(value, Opaque):
                self.found.setdefault(name, (value, cx.here))
