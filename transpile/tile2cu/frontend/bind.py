"""Values for open sizes from the file itself: from a call of the kernel in its driver, or from its autotuner's list."""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field

import libcst as cst

from tile2cu.core.dtype import DType
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Expr, Role, Var
from tile2cu.core.program import Buffer
from tile2cu.core.span import Span
from tile2cu.frontend import classes, execute, host
from tile2cu.frontend.context import Bindings, Context, Found
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.fault import Exhausted, Fault
from tile2cu.frontend.limits import MAX_STEPS, Budget
from tile2cu.frontend.namesakes import namesakes
from tile2cu.frontend.outside import Outside
from tile2cu.frontend.parse import SourceFile
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import (
    Arguments,
    Builtin,
    Class,
    Function,
    FunctionKind,
    Instance,
    Opaque,
    TorchTensor,
)

MAX_HOST_STEPS = 50_000
MAX_ASIDE_STEPS = 4_000  # of a function that does not lead to the kernel: its result may still say a shape


@dataclass
class _Call:
    """One call of the kernel: what is known of its arguments, and of the tensors among them.

    `aside`: it is in a branch that the driver does not take.
    """

    span: Span
    aside: bool = False
    values: dict[str, object] = field(default_factory=dict)
    tensors: dict[str, TorchTensor] = field(default_factory=dict)
    unknown: int = 0


class Calls:
    """The arguments that a file calls its kernel with. Nothing is read before it is asked for."""

    def __init__(self, source: SourceFile, budget: Budget, outside: Outside, name: str) -> None:
        self.out_idx: object = None
        self._source = source
        self._budget = budget
        self._outside = outside
        self._name = name
        self._calls: list[_Call] = []
        self._ran: set[cst.CSTNode] = set()
        self._module: Env | None = None
        self._configs: dict[str, Found] = {}
        self._listed: list[dict[str, object]] = []
        self._elsewhere: dict[str, Found] = {}  # arguments of the file's other kernels
        self._namesakes: dict[str, Found] = {}
        self._options: dict[str, tuple[object, Span]] = {}
        self._stages: list[Callable[[], None]] = [
            self._run_driver,
            self._run_others,
            self._read_configs,
            self._read_namesakes,
        ]
        if outside.live is not None:  # the call itself is known: nothing is read from the file
            tensors = {name: TorchTensor(shape, None) for name, shape in outside.live.shapes.items()}
            self._calls, self._stages = [_Call(source.start(), tensors=tensors)], []

    @property
    def found(self) -> Mapping[str, Found]:
        """The value of each parameter, from the call that gives most, and where that call is."""
        merged: dict[str, Found] = {}
        for call in sorted(self._calls, key=lambda call: (call.aside, call.unknown)):
            for name, value in call.values.items():
                merged.setdefault(name, Found(value, call.span))
        return self._namesakes | self._configs | merged

    def called(self) -> Mapping[str, object]:
        """What the driver's call gives, by parameter; not what a tuner would."""
        self.supply(("",), {})
        noted = {name for each in self._calls for name in each.values}
        return {name: found.value for name, found in self.found.items() if name in noted}

    def listed(self) -> list[dict[str, object]]:
        """The configurations of `@tilelang.autotune(configs=...)`, in their order."""
        self.supply(("",), {})
        return self._listed

    def ask(self, name: str) -> Found | None:
        """The value of one parameter, or None."""
        self.supply((name,), {})
        return self.found.get(name)

    def variable(self, name: str) -> Found | None:
        """What the file gives a global name where it is run as a program: a number, a type, a flag, or a tensor."""
        if self._module is None and self._stages:
            self._bounded(self._stages.pop(0))
        value = None if self._module is None else self._module.values.get(name)
        if self._module is None or not (isinstance(value, int | float | str | DType | TorchTensor)):
            return None
        return Found(plain(value), self._module.places[name], "variable")

    def _variables(self) -> dict[str, Found]:
        """The numbers among the global names that only the run as a program binds."""
        names = () if self._module is None else self._module.places
        return {name: found for name in names if (found := self.variable(name)) is not None}

    def supply(self, names: tuple[str, ...], params: Mapping[str, Buffer | Var]) -> tuple[str, ...]:
        """Look for the values of names, one source after the other; gives those that none has.

        `params` are the tensors that the kernel is known to have: extents of a call's tensors are values, too.
        """
        while True:
            self._solve(params)
            found = self.found
            missing = tuple(name for name in names if name not in found)
            if not missing or not self._stages:
                return missing
            self._bounded(self._stages.pop(0))

    def static_names(self) -> frozenset[str]:
        """The parameters whose value cannot be an open size: flags, types, texts."""
        return frozenset(name for name, found in self.found.items() if type(found.value) is not int)

    def _bounded(self, stage: Callable[[], None]) -> None:
        """A driver that cannot be read to its end gives less: that is no error of the kernel."""
        with contextlib.suppress(Fault, Tile2CuError, RecursionError):
            stage()

    def _context(self) -> Context:
        budget = Budget(steps=max(self._budget.steps, MAX_STEPS - MAX_HOST_STEPS))
        cx = self._outside.context(self._source, budget, Bindings({}), self._call)
        cx.wanted, cx.options = self._name, self._options
        return cx

    def _run_driver(self) -> None:
        """Run the file as a program, as far as it is static."""
        cx = self._context()
        try:
            self._module = host.module_scope(cx, main=True)
        finally:
            self._keep_tuned(cx)

    def _keep_tuned(self, cx: Context) -> None:
        """The configuration of an AutoTuner that was made on the way."""
        for name, value in cx.tuned.items():
            if _is_known(value):
                self._configs.setdefault(name, Found(plain(value), cx.here or cx.source.start(), "tuner"))

    def _run_others(self) -> None:
        """Run the functions that lead to the kernel, but that nothing called: tests, interfaces for other files."""
        cx = self._context()
        for function in self._uncalled():
            if any(call.unknown == 0 and not call.aside for call in self._calls):
                return
            if function.node not in self._ran:
                cx.here = cx.source.span(function.node)
                try:
                    self._call(cx, function, Arguments(self._made_for(cx, function)))
                except Tile2CuError as error:
                    if error.code == host.FATAL:
                        raise
                finally:
                    self._keep_tuned(cx)

    def _made_for(self, cx: Context, function: Function) -> tuple[object, ...]:
        """The object of a method that nothing calls: what `__init__` sets by its defaults; none of other functions."""
        values = [] if self._module is None else self._module.values.values()
        of = next((each for each in values if isinstance(each, Class) and function in each.values.values()), None)
        if of is None or not classes.takes_self(function):
            return ()
        made = Instance(of.name, {}, of)
        if isinstance(init := of.values.get("__init__"), Function):
            host.call_host(cx, init, Arguments((made,)))
        return (made,)

    def _functions(self) -> list[Function]:
        """The functions and methods of the file, in its order, without the kernel."""
        values = [] if self._module is None else list(self._module.values.values())
        methods = (method for value in values if isinstance(value, Class) for method in value.values.values())
        found = [value for value in (*values, *methods) if isinstance(value, Function)]
        return [each for each in found if isinstance(each.node, cst.FunctionDef) and each.name != self._name]

    def _uncalled(self) -> Iterator[Function]:
        """Functions and methods that name the kernel; those at the end of a file, which drive it, come first."""
        plain = self._functions()
        leads = [each for each in plain if self._mentions(each.node, {self._name})]
        names = {each.name for each in leads}
        outer = [each for each in plain if each not in leads and self._mentions(each.node, names - {each.name})]
        yield from reversed(outer)
        yield from reversed(leads)

    def _mentions(self, node: cst.CSTNode, names: Set[str]) -> bool:
        return not names.isdisjoint(re.findall(r"\w+", self._source.code(node)))

    @functools.cached_property
    def _leads(self) -> frozenset[str]:
        """The names of the file's functions and classes from which the kernel can be reached."""
        body = self._source.module.body
        defined = [node for node in body if isinstance(node, cst.FunctionDef | cst.ClassDef)]
        words = {node.name.value: set(re.findall(r"\w+", self._source.code(node))) for node in defined}
        reached = {self._name}
        while more := {name for name, used in words.items() if name not in reached and used & reached}:
            reached |= more
        return frozenset(reached)

    def _read_configs(self) -> None:
        """The first configuration of `@tilelang.autotune(configs=...)`."""
        kernel = None if self._module is None else self._module.values.get(self._name)
        if not isinstance(kernel, Function) or kernel.configs is None:
            return
        cx = self._context()
        cx.wanted = ""  # a list of configurations leads to no call, and is worth its steps
        cx.here = cx.source.span(kernel.configs)
        configs = evaluate(cx, kernel.configs, kernel.env)
        if isinstance(configs, Function):
            known = {name: found.value for name, found in self.found.items()}
            wanted = execute.parameter_list(configs)
            configs = self._call(cx, configs, Arguments((), {name: known[name] for name in wanted if name in known}))
        found = [each for each in configs if isinstance(each, dict)] if isinstance(configs, list) else []
        self._listed = [{str(name): plain(value) for name, value in each.items()} for each in found]
        if self._listed:
            how = "first configuration"
            self._configs = {name: Found(value, cx.here, how) for name, value in self._listed[0].items()}

    def _read_namesakes(self) -> None:
        """What the rest of the file states of parameters with the same names."""
        found = namesakes(self._context(), self._functions(), self._elsewhere, self._leads, self._variables())
        self._namesakes = found

    def _call(self, cx: Context, function: Function, arguments: Arguments) -> object:
        """Calls on the host: the kernel's arguments are noted, other functions are run as far as possible."""
        if function.name == self._name and function.env.parent is None:
            return self._note(cx, function, arguments)
        if function.kind is not FunctionKind.PLAIN:
            self._note_elsewhere(cx, function, arguments)
            return Instance(function.name)
        execute.enter_call(cx, function)
        self._ran.add(function.node)
        try:
            return self._run(cx, function, arguments)
        finally:
            cx.budget.calls -= 1

    def _run(self, cx: Context, function: Function, arguments: Arguments) -> object:
        """Run a function of the driver; one that cannot reach the kernel may not spend what the others need."""
        if not cx.wanted or self._mentions(function.node, self._leads):
            return host.call_host(cx, function, arguments)
        outer = cx.budget.limit
        cx.budget.limit = min(outer, cx.budget.steps + MAX_ASIDE_STEPS)
        try:
            return host.call_host(cx, function, arguments)
        except (Exhausted, Tile2CuError) as error:
            if error.code != host.FATAL or cx.budget.steps >= outer:
                raise
            return Opaque(function.name, cx.here)
        finally:
            cx.budget.limit = outer

    def _note_elsewhere(self, cx: Context, function: Function, arguments: Arguments) -> None:
        """Note a call of another kernel of the file, for parameters with the same names."""
        assert cx.here is not None
        for name, value in (dict(arguments.named) | execute.bind_loosely(function, arguments)).items():
            if _is_known(value):
                self._elsewhere.setdefault(name, Found(plain(value), cx.here, f"call of `{function.name}`"))

    def _note(self, cx: Context, function: Function, arguments: Arguments) -> object:
        """Note a call of the kernel; the result denotes the compiled kernel."""
        assert cx.here is not None
        call = _Call(cx.here, cx.aside > 0)
        self._calls.append(call)
        self._add(call, dict(arguments.named) | execute.bind_loosely(function, arguments))
        inner = _inner_factory(function)

        def called(cx: Context, *args: object, **named: object) -> object:
            if inner is not None:
                listed = [param.name.value for param in inner.params.params]
                self._add(call, dict(zip(listed, args, strict=False)) | named)
            return Opaque(function.name, cx.here)

        def compiled(cx: Context, out_idx: object) -> None:
            if self.out_idx is None and not isinstance(out_idx, Opaque):
                self.out_idx = plain(out_idx)

        return Instance(
            function.name, {"__call__": Builtin(function.name, called), "__compile__": Builtin("compile", compiled)}
        )

    def _add(self, call: _Call, values: Mapping[str, object]) -> None:
        for name, value in values.items():
            if isinstance(value, TorchTensor):
                call.tensors[name] = value
            elif _is_known(value):
                call.values[name] = plain(value)
            else:
                call.unknown += 1

    def _solve(self, params: Mapping[str, Buffer | Var]) -> None:
        """Sizes from the shapes of a call's tensors."""
        for call in self._calls:
            for name, tensor in call.tensors.items():
                param = params.get(name)
                if not isinstance(param, Buffer) or len(param.shape) != len(tensor.shape):
                    continue
                for extent, value in zip(param.shape, tensor.shape, strict=True):
                    if isinstance(extent, Var) and extent.role is Role.SIZE and isinstance(value, int):
                        call.values.setdefault(extent.name, plain(value))


def _inner_factory(function: Function) -> cst.FunctionDef | None:
    """The function that a factory returns where that takes arguments of its own, as in `make(M, N)(block_M)`."""
    body = function.node.body.body if isinstance(function.node, cst.FunctionDef) else ()
    nested = [node for node in body if isinstance(node, cst.FunctionDef) and not node.decorators]
    return next((node for node in nested if any(isinstance(each, cst.FunctionDef) for each in node.body.body)), None)


def _is_known(value: object) -> bool:
    match value:
        case Opaque() | Instance() | Class() | Expr() | Function() | TorchTensor():
            return False
        case list() | tuple():
            return all(map(_is_known, value))
        case dict():
            return all(map(_is_known, value.values()))
        case _:
            return True


def plain(value: object) -> object:
    """A value without the names that its numbers have in the driver."""
    match value:
        case bool() | None | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case list():
            return [plain(part) for part in value]
        case tuple():
            return tuple(plain(part) for part in value)
        case dict():
            return {name: plain(part) for name, part in value.items()}
        case _:
            return value
