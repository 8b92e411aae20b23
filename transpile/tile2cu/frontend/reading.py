"""A file whose kernels are traced, ever again with other values of their parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuError, require_one_kernel
from tile2cu.core.expr import Var
from tile2cu.core.origin import ENVIRONMENT
from tile2cu.core.program import Buffer, Program
from tile2cu.frontend.bind import Calls
from tile2cu.frontend.context import Bindings
from tile2cu.frontend.fault import Exhausted, UnboundSize, did_you_mean
from tile2cu.frontend.find import Kernel, importing_makers
from tile2cu.frontend.given import as_given
from tile2cu.frontend.imports import reader_beside
from tile2cu.frontend.kernels import Trace, call_function, find_kernels
from tile2cu.frontend.limits import Budget
from tile2cu.frontend.live import Live
from tile2cu.frontend.outside import Outside
from tile2cu.frontend.parse import SourceFile, source_file
from tile2cu.targets import SM80, Target


class Reading:
    """A file as it is read for one command: what does not depend on the values of parameters is found out once.

    The arguments are those of `frontend.programs`.
    """

    def __init__(
        self,
        path: Path | None,
        text: str,
        *,
        bindings: Mapping[str, object] | None = None,
        read: Callable[[str], str | None] | None = None,
        target: Target = SM80,
        live: Live | None = None,
    ) -> None:
        self._source = source_file("<text>" if path is None else str(path), text)
        self._bindings = dict(bindings or {})
        environment = {name: str(value) for name, value in self._bindings.items() if name.startswith(ENVIRONMENT)}
        self._outside = Outside(read or reader_beside(path), target, environment, live)
        self._found: dict[str | None, tuple[Kernel, ...]] = {}
        self._tracers: dict[str, _Tracer] = {}
        self._budget = Budget()

    def found(self, name: str | None = None) -> tuple[Kernel, ...]:
        """The kernels of the file, in its order, maybe none; with those that others call, the one of that name."""
        if name not in self._found:
            with _bounded(self._source):
                self._found[name] = find_kernels(self._source, self._budget, self._outside, name)
        return self._found[name]

    def kernels(self, name: str | None = None) -> tuple[Kernel, ...]:
        """All kernels, or the one of that name. Errors: Tile2CuError T2C-F003, T2C-F004."""
        found = self.found(name)
        if not found:
            makers = importing_makers(self._source.module)
            help = "a kernel is a @tilelang.jit function with `with T.Kernel(...)`, or one that returns a @T.prim_func"
            if makers:
                help = "functions that import tilelang themselves are named: --kernel " + ", --kernel ".join(makers)
            raise Tile2CuError("T2C-F003", "the file has no kernel", self._source.start(), help=help)
        if name is None:
            return found
        chosen = tuple(kernel for kernel in found if kernel.name == name)
        if not chosen:  # one of the prim_funcs of a factory that returns several: FACTORY_PRIMFUNC
            chosen = tuple(kernel for kernel in found if name.startswith(f"{kernel.name}_") and kernel.makes(name))
        if not chosen:
            names = [kernel.name for kernel in found]
            help = did_you_mean(name, names) or f"the file has {', '.join(names)}"
            raise Tile2CuError("T2C-F004", f"the file has no kernel `{name}`", self._source.start(), help=help)
        return chosen

    def kernel(self, name: str | None) -> Kernel:
        """The kernel of that name, or the file's only one. Errors: T2C-C004, T2C-F003, T2C-F004."""
        chosen = self.kernels(name)
        require_one_kernel([kernel.name for kernel in chosen])
        return chosen[0]

    def called(self, kernel: str) -> Mapping[str, object]:
        """What the file's driver calls a kernel with, by parameter."""
        with _bounded(self._source):
            return Calls(self._source, Budget(), self._outside, kernel).called()

    def listed(self, kernel: str) -> list[dict[str, object]]:
        """The configurations of a kernel's `@tilelang.autotune(configs=...)`, in their order."""
        with _bounded(self._source):
            return Calls(self._source, Budget(), self._outside, kernel).listed()

    def programs(self, kernel: str | None = None, values: Mapping[str, object] | None = None) -> tuple[Program, ...]:
        """Every kernel of the file, or the one named, with `values` in place of what the bindings give.

        A trace with other values than the first one takes the same sizes from the file. Errors: those of
        `frontend.programs`.
        """
        given = {name: as_given(value) for name, value in {**self._bindings, **(values or {})}.items()}
        wanted = self.kernels(kernel)
        budget = Budget(steps=self._budget.steps)
        with _bounded(self._source):
            traced = [self._tracer(each.name).programs(budget, given) for each in wanted]
        known = {name: None for _, names in traced for name in names}
        unknown = next((name for name in given if name not in known and self._outside.live is None), None)
        if unknown is not None:
            raise _unknown_binding(unknown, known)
        made = tuple(program for programs, _ in traced for program in programs)
        return tuple(program for program in made if program.name == kernel) or made

    def _tracer(self, kernel: str) -> "_Tracer":
        if kernel not in self._tracers:
            self._tracers[kernel] = _Tracer(self._source, kernel, self._outside)
        return self._tracers[kernel]


class _Tracer:
    """Traces one kernel; what the file's driver calls it with is found out by the first trace that asks."""

    def __init__(self, source: SourceFile, name: str, outside: Outside) -> None:
        self._source, self._name = source, name
        self._read: dict[str, str] = {}
        self._outside = outside.recording(self._read)
        self._calls: Calls | None = None
        self._demanded: frozenset[str] = frozenset()

    def programs(self, budget: Budget, given: Mapping[str, object]) -> tuple[tuple[Program, ...], tuple[str, ...]]:
        """The kernel's Program, one for each prim_func it returns, and the names that -D can bind in it.

        A parameter that nothing binds is a run-time size, until its value is needed: then the trace starts again with
        the value from a call in the file, or fails.
        """
        first = self._calls is None
        calls = self._calls = self._calls or Calls(self._source, budget, self._outside, self._name)
        demanded = self._demanded
        found: list[Program] = []
        known: dict[str, None] = {}
        parts = 1
        while len(found) < parts:
            bindings = Bindings(given, called=calls.found, demanded=demanded, ask=calls.ask, variable=calls.variable)
            cx = self._outside.context(self._source, budget, bindings, call_function)
            try:
                attempt = Trace(cx, self._name, calls, len(found))
                made = attempt.program()
                if cx.live is not None and (fixed := _unfixed(bindings, calls, cx.recorder.params)):
                    demanded |= fixed
                    continue
                found.append(made)
                known, parts = known | bindings.known, attempt.parts
            except UnboundSize as error:
                missing = calls.supply(error.names, cx.recorder.params)
                if (missing and not error.optional) or demanded.issuperset(error.names):
                    raise _unbound(error, given, bindings) from None
                demanded |= frozenset(error.names) | calls.static_names()
            except Tile2CuError:
                names = tuple(name for name in bindings.said_open if name not in demanded)
                if not names or calls.supply(names, cx.recorder.params):
                    raise
                demanded |= frozenset(names) | calls.static_names()  # a file that goes no further with an open size
        if first:
            self._demanded = demanded
        imports = tuple(sorted(self._read.items()))
        return tuple(replace(each, source=replace(each.source, imports=imports)) for each in found), tuple(known)


def _unfixed(bindings: Bindings, calls: Calls, params: Mapping[str, Buffer | Var]) -> frozenset[str]:
    """The sizes from T.const that this trace left open, and that the tensors of a running program's call give."""
    names = tuple(name for name in bindings.fixed if name not in bindings.demanded and name not in bindings.given)
    return frozenset(names).difference(calls.supply(names, params))


def _unbound(error: UnboundSize, given: Mapping[str, object], bindings: Bindings) -> Tile2CuError:
    """The error of an open size; a misspelt -D is the likelier cause where there is one."""
    known = bindings.known | bindings.possible
    unknown = next((name for name in given if name not in known), None)
    return error if unknown is None else _unknown_binding(unknown, known)


def _unknown_binding(name: str, known: Sequence[str] | Mapping[str, None]) -> Tile2CuError:
    """The error of a -D or an --env whose name no kernel has."""
    variables = [each.removeprefix(ENVIRONMENT) for each in known if each.startswith(ENVIRONMENT)]
    if name.startswith(ENVIRONMENT):
        variable = name.removeprefix(ENVIRONMENT)
        return Tile2CuError(
            "T2C-F005",
            f"--env {variable}: the kernel depends on no variable of this name",
            help=did_you_mean(variable, variables) or f"it depends on {', '.join(variables) or 'none'}",
        )
    known = [each for each in known if not each.startswith(ENVIRONMENT)]
    listed = ", ".join(known) or "nothing"
    return Tile2CuError(
        "T2C-F005",
        f"-D {name}: no parameter or size has this name",
        help=did_you_mean(name, known) or f"what can be bound: {listed}",
    )


@contextmanager
def _bounded(source: SourceFile) -> Iterator[None]:
    """A file that asks for too much, with no loop of its own to blame, is blamed as a whole."""
    try:
        yield
    except Exhausted as fault:
        raise fault.at(source.start()) from None
    except RecursionError:
        raise Tile2CuError("T2C-F002", "the code is nested too deeply to be evaluated", source.start()) from None
