"""From a kernel's function to its Program: bind the arguments, run the factory, trace the body."""

import re
from collections.abc import Sequence

import libcst as cst
from msgspec.structs import replace

from tile2cu.core.dtype import BOOL, FLOAT32, INT32, DType
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Expr, Role, Var, walk
from tile2cu.core.program import Buffer, Launch, Program
from tile2cu.core.span import Span
from tile2cu.frontend import execute, host, launching, trace
from tile2cu.frontend.bind import Calls
from tile2cu.frontend.context import Bindings, Context
from tile2cu.frontend.docstrings import specialised
from tile2cu.frontend.evaluate import evaluate
from tile2cu.frontend.fault import Exhausted, Fault, UnboundSize, counted
from tile2cu.frontend.find import (
    Form,
    Kernel,
    defines_prim_func,
    kernel_named,
    kernels,
    makes_prim_func,
    parameter_names,
)
from tile2cu.frontend.given import given_values
from tile2cu.frontend.limits import Budget
from tile2cu.frontend.live import as_data
from tile2cu.frontend.names import Naming, naming
from tile2cu.frontend.operators import static_int
from tile2cu.frontend.outside import Outside
from tile2cu.frontend.parse import SourceFile, leading_comments, param_comment
from tile2cu.frontend.scope import Env
from tile2cu.frontend.uses import constant_names, expressions, extents, size_names, solvable_sizes
from tile2cu.frontend.values import Arguments, Builtin, Function, FunctionKind, Handle, Opaque, TensorType, describe

_C_MAIN = "main"  # a program's own entry
MAX_FACTORIES = 8  # factories that return factories


def find_kernels(source: SourceFile, budget: Budget, outside: Outside, name: str | None = None) -> tuple[Kernel, ...]:
    """The kernels of a file, in its order; with those that others call, the one of that name."""
    cx = outside.context(source, budget, Bindings({}), call_function)
    module = host.module_scope(cx, main=False)
    found = kernels(cx, module)
    named = kernel_named(cx, module, name) if name and all(kernel.name != name for kernel in found) else None
    return (*found, named) if named is not None else found


def call_function(cx: Context, function: Function, arguments: Arguments) -> object:
    """Run a function of the user's file."""
    execute.enter_call(cx, function)
    try:
        match function.kind:
            case FunctionKind.PLAIN:
                return execute.call_plain(cx, function, arguments, declares=defines_prim_func(cx, function))
            case FunctionKind.MACRO:
                if not cx.recorder.tracing:  # in a prim_func it may open kernels of its own
                    cx.recorder.require_kernel(f"the macro `{function.name}`")
                return trace.call_macro(cx, function, execute.bind_parameters(cx, function, arguments))
            case FunctionKind.JIT if not cx.recorder.tracing and makes_prim_func(cx, function):
                made = execute.call_plain(cx, function, arguments, declares=True)
                return replace(made, maker=function) if isinstance(made, Function) else made
            case _:
                raise Fault("T2C-F012", f"the kernel `{function.name}` cannot be called here")
    finally:
        cx.budget.calls -= 1


class Trace:
    """One attempt at one kernel."""

    def __init__(self, cx: Context, name: str, calls: Calls, part: int) -> None:
        self.cx = cx
        cx.trace_block = trace.trace_block
        self.part, self.parts = part, 1  # which of the prim_funcs that the factory returns, and how many there are
        self.calls = calls
        module = host.module_scope(cx, main=False)
        all_kernels = kernels(cx, module)
        kernel = kernel_named(cx, module, name)
        assert kernel is not None, "find_kernels found it"
        self.kernel = kernel
        self.kernel_names = {kernel.name for kernel in all_kernels}
        self.arguments: dict[str, object] = {}  # of the factory, or of an eager function
        self.decorated = self.kernel.function  # the one that tilelang.jit decorates, where factories are nested
        for parameter in parameter_names(self.kernel):
            cx.bindings.possible[parameter] = None
        cx.bindings.values = given_values(cx, module)

    def program(self) -> Program:
        """The kernel's Program."""
        try:
            return self._program()
        except Exhausted:
            raise
        except Fault as fault:
            raise fault.at(self._name_span(self.kernel.function)) from None

    def _program(self) -> Program:
        outer = self.kernel.function
        if self.kernel.form is Form.EAGER:
            traced, outputs = outer, self._eager()
        else:
            traced = outer if self.kernel.form is Form.PRIM_FUNC else self._run_factory()
            returned = self._prim_func(traced)
            outputs = self._outputs(self.decorated)
            if returned and outputs:
                raise self._error("T2C-F028", "`out_idx` names outputs, and the T.prim_func returns them", traced)
            outputs = outputs or returned
        return self._finish(traced, outputs)

    def _run_factory(self) -> Function:
        """The prim_func that the factory makes; a factory of factories is run through."""
        value: object = self.kernel.function
        for _ in range(MAX_FACTORIES):
            if not isinstance(value, Function) or value.kind is FunctionKind.PRIM_FUNC:
                break
            if value.kind is FunctionKind.JIT:
                self.decorated = value
            value = self._call_factory(value)
            if isinstance(value, Function):
                continue
            nested = [each for each in value if self._is_factory(each)] if isinstance(value, tuple) else []
            value = nested[0] if len(nested) == 1 else value
        made = list(value) if isinstance(value, tuple | list) else [value]
        made = [each for each in made if isinstance(each, Function)] or made  # and not what its caller launches it with
        if all(isinstance(each, Function) and each.kind is FunctionKind.PRIM_FUNC for each in made) and made:
            self.parts = len(made)
            found = made[self.part]
            assert isinstance(found, Function)
            self.decorated = found.maker or self.decorated
            return found
        way_out = "end it with `return` and the function's name" if value is None else ""
        what = f"`{self.kernel.name}` returns {describe(value)}, not a T.prim_func"
        raise self._error("T2C-F032", what, help=way_out)

    def _call_factory(self, factory: Function) -> object:
        env = Env(factory.env, declares=True)
        for param in (*factory.definition.params.params, *factory.definition.params.kwonly_params):
            self.arguments[param.name.value] = value = self._argument(factory, param)
            env.bind(param.name.value, value, self.cx.source.span(param.name))
        if isinstance(factory.definition.params.star_arg, cst.Param):
            env.values[factory.definition.params.star_arg.name.value] = ()
        if factory.definition.params.star_kwarg is not None:
            env.values[factory.definition.params.star_kwarg.name.value] = {}
        if (driver := launching.as_driver(self.cx, factory)) is not None:
            return launching.kernels_of(self.cx, driver, factory, env)
        flow = execute.run_body(self.cx, execute.statements(factory.definition.body), env)
        value = flow.value if isinstance(flow, execute.Return) else None
        if not isinstance(value, Opaque) or not self.cx.tuned:
            return value
        made = [each for each in env.values.values() if self._is_factory(each)]  # a tuner runs the factory inside
        return made[0] if len(made) == 1 else value

    def _is_factory(self, value: object) -> bool:
        return isinstance(value, Function) and defines_prim_func(self.cx, value)

    def _argument(self, function: Function, param: cst.Param) -> object:
        """The value of a factory's parameter: from -D, its default, a call in the file, or open."""
        name, cx = param.name.value, self.cx
        span, comment = cx.source.span(param.name), param_comment(param)
        if name in function.defaults and name not in cx.bindings.given:
            cx.bindings.known[name] = None
            value, origin = function.defaults[name], "default"
            if value is None and name in cx.tuned:
                value, origin = cx.tuned[name], "tuner"
            elif value is None:
                value, origin = cx.bindings.instead_of_none(name) or (value, origin)
            if value is None:
                cx.bindings.none[name] = None
            return cx.bind_static(name, value, span, formula="", comment=comment, origin=origin)
        return cx.size(name, span, comment)

    def _prim_func(self, function: Function) -> tuple[int, ...]:
        """Trace a prim_func: its parameters are the kernel's, its body is the program. Gives the outputs it returns."""
        cx = self.cx
        env = Env(function.env, declares=True)
        params = function.definition.params.params
        cx.recorder.signature = tuple(param.name.value for param in params)
        for param in params:
            value: object = self._parameter(function, param)
            if isinstance(value, Buffer | Var):
                value = cx.recorder.add_param(param.name.value, value)
            env.bind(param.name.value, value, cx.source.span(param.name))
        cx.recorder.tracing, cx.recorder.passes = True, function.passes
        flow = trace.trace_body(cx, function.definition.body, env)
        unknown = next((name for name in cx.recorder.signature if name not in cx.recorder.params), None)
        if unknown is not None:
            raise self._error("T2C-F029", f"no T.match_buffer states what tensor `{unknown}` is", function)
        self._order_params()
        return self._returned(None if flow is None else flow.value)

    def _parameter(self, function: Function, param: cst.Param) -> Buffer | Var | Handle:
        """A parameter of a prim_func by its annotation."""
        name, span = param.name.value, self.cx.source.span(param.name)
        if param.annotation is None:
            if name in _annotated_in(function):
                return Handle(name, span, param_comment(param))
            help = "write `A: T.Tensor(shape, dtype)`"
            raise Fault("T2C-F029", f"the parameter `{name}` has no type", help=help).at(span)
        annotation = evaluate(self.cx, param.annotation.annotation, function.env)
        if isinstance(annotation, Builtin) and annotation.name == "T.handle":
            return Handle(name, span, param_comment(param))
        value = self._from_annotation(param, annotation)
        if value is None:
            raise Fault(
                "T2C-F029",
                f"`{name}` is annotated with {describe(annotation)}, not a tensor or a scalar type",
                help="write `A: T.Tensor(shape, dtype)` or `alpha: T.float32`",
            ).at(self.cx.source.span(param.annotation.annotation))
        return value

    def _from_annotation(self, param: cst.Param, annotation: object) -> Buffer | Var | None:
        name = param.name.value
        match annotation:
            case TensorType():
                return annotation.named(name, self.cx.source.span(param.name), param_comment(param))
            case DType():
                self.cx.remarks[name] = param_comment(param)
                return Var(annotation, name, Role.SCALAR)
            case Builtin(name="int" | "float" | "bool" as python):
                return Var({"int": INT32, "float": FLOAT32, "bool": BOOL}[python], name, Role.SCALAR)
            case _:
                return None

    def _eager(self) -> tuple[int, ...]:
        """Trace an eager function; gives the outputs that it returns."""
        function, cx = self.kernel.function, self.cx
        env = Env(function.env, declares=True)
        listed = (*function.definition.params.params, *function.definition.params.kwonly_params)
        cx.recorder.signature = tuple(param.name.value for param in listed)
        for param in listed:
            self.arguments[param.name.value] = value = self._eager_parameter(function, param)
            env.bind(param.name.value, value, cx.source.span(param.name))
        cx.recorder.tracing = True
        flow = trace.trace_body(cx, function.definition.body, env)
        self._order_params()
        return self._returned(None if flow is None else flow.value)

    def _eager_parameter(self, function: Function, param: cst.Param) -> object:
        """A parameter of an eager function: a tensor or scalar where its annotation states so, else a value."""
        if param.annotation is not None and param.default is None:
            annotation = evaluate(self.cx, param.annotation.annotation, function.env)
            found = None if isinstance(annotation, Builtin | Opaque) else self._from_annotation(param, annotation)
            if found is not None:
                return self.cx.recorder.add_param(param.name.value, found)
        return self._argument(function, param)

    def _order_params(self) -> None:
        """Parameters in the order of the signature; outputs from T.empty follow."""
        recorder = self.cx.recorder
        names = [name for name in recorder.signature if name in recorder.params]
        names += [name for name in recorder.params if name not in recorder.signature]
        recorder.params = {name: recorder.params[name] for name in names}

    def _returned(self, value: object) -> tuple[int, ...]:
        """The indices of the returned tensors; every tensor from T.empty must be returned."""
        recorder = self.cx.recorder
        values = value if isinstance(value, tuple | list) else () if value is None else (value,)
        params = list(recorder.params.values())
        made = [name for name in recorder.params if name not in recorder.signature]
        for part in values:
            if not isinstance(part, Buffer) or part.name not in made:
                raise self._error("T2C-F028", f"a kernel returns tensors from T.empty, not {describe(part)}")
        forgotten = next((name for name in made if all(recorder.params[name] is not part for part in values)), None)
        if forgotten is not None:
            raise self._error("T2C-F028", f"`{forgotten}` comes from T.empty, but is not returned")
        return tuple(next(at for at, param in enumerate(params) if param is part) for part in values)

    def _outputs(self, outer: Function) -> tuple[int, ...]:
        """The parameters that `out_idx` of the jit decorator names."""
        live = self.cx.live
        out_idx = outer.out_idx if live is None or live.out_idx is None else live.out_idx
        undecorated = out_idx is None and outer.kind is not FunctionKind.JIT
        if live is None and undecorated and "tilelang.compile" in self.cx.source.text:
            self.calls.ask("out_idx")
            out_idx = self.calls.out_idx
        if out_idx is None:
            return ()
        listed = out_idx if isinstance(out_idx, list | tuple) else [out_idx]
        params = list(self.cx.recorder.params.values())
        found: list[int] = []
        for index in listed:
            number = int(static_int(index, "`out_idx`"))
            if not -len(params) <= number < len(params) or not isinstance(params[number], Buffer):
                raise self._error(
                    "T2C-F028",
                    f"`out_idx` names parameter {number}; the kernel has {counted(len(params), 'parameter')}",
                )
            found.append(number % len(params))
        return tuple(found)

    def _finish(self, traced: Function, outputs: tuple[int, ...]) -> Program:
        recorder, cx = self.cx.recorder, self.cx
        if not recorder.launches:
            raise self._error("T2C-F025", f"`{traced.name}` has no `with T.Kernel(...)`", traced)
        params, launches = tuple(recorder.params.values()), tuple(recorder.launches)
        workspaces = tuple(recorder.workspaces)
        used = tuple(expressions((*params, *workspaces, *recorder.views), launches))
        sizes = self._in_order_of_arguments(size_names(used))
        self._require_solvable(sizes, params, launches, traced)
        named = constant_names(used)
        constants = [(key, constant) for key, constant in cx.constants.by_name.items() if key in named]
        names = naming(constants, [*recorder.params, *sizes], launches)
        own_name = self.kernel.name if self.parts == 1 else f"{self.kernel.name}_{traced.name}"
        _, _, about = (cx.source.module.get_docstring() or "").strip().partition("\n\n")
        name = self._of_file(own_name) if own_name == _C_MAIN else own_name
        return Program(
            name=name,
            alias_of=own_name if name != own_name else "",
            function=traced.name,
            doc=specialised(_docstring(self.kernel.function), self.arguments),
            about=specialised(about, self.arguments),
            source=cx.source.source,
            params=names.apply(params),
            outputs=outputs,
            sizes=tuple(Var(INT32, size, Role.SIZE) for size in sizes),
            remarks=tuple((name, cx.remarks[name]) for name in (*recorder.params, *sizes) if cx.remarks.get(name)),
            constants=tuple(
                replace(each, name=names.constants.get(key, key), computed=_in_terms_of(named, each.computed, names))
                for key, each in constants
            ),
            launches=names.apply(launches),
            span=self._name_span(self.kernel.function),
            comments=leading_comments(traced.definition),
            bindings=tuple(
                (name, as_data(value))  # type: ignore[misc]
                for name, value in cx.bindings.given.items()
                if name in cx.bindings.known and not isinstance(value, Opaque)
            ),
            workspaces=names.apply(workspaces),
            user_code=tuple(recorder.pasted),
            own_barriers=self.decorated.own_barriers or (cx.live is not None and cx.live.own_barriers),
            dropped=tuple(recorder.dropped.items()),
            rebound=tuple(recorder.rebound.items()),
            decided=tuple(
                replace(each, condition=names.apply(each.condition))
                for each in cx.decided.values()
                if constant_names(walk(each.condition)) <= named
            ),
            derived=tuple(replace(each, value=names.apply(each.value)) for each in cx.derived),
        )

    def _in_order_of_arguments(self, sizes: Sequence[str]) -> tuple[str, ...]:
        """Sizes in the order of the factory's parameters; others follow, in order of first use."""
        listed = list(self.arguments)
        return tuple(sorted(sizes, key=lambda size: listed.index(size) if size in listed else len(listed)))

    def _of_file(self, name: str) -> str:
        """The name of a kernel that C's `main` leaves without one: its file's, and its own behind that where another
        kernel of the file has it."""
        stem = re.sub(r"\W", "_", self.cx.source.source.name.rpartition(".")[0], flags=re.ASCII)
        stem = f"_{stem}" if stem[:1].isdigit() else stem
        return f"{stem}_{name}" if stem in self.kernel_names else stem

    def _require_solvable(
        self, sizes: Sequence[str], params: Sequence[Buffer | Var], launches: Sequence[Launch], traced: Function
    ) -> None:
        """An open size that no tensor's shape gives is the driver's, or one more argument where it must be an integer.

        It must be one where it counts blocks, elements or iterations of a loop; any other may denote a fraction.
        """
        solvable = solvable_sizes(params)
        missing = tuple(size for size in sizes if size not in solvable)
        self.calls.supply(missing, self.cx.recorder.params)
        called = {name for name, found in self.calls.found.items() if found.how == "call"}
        given = tuple(size for size in missing if size in called - self.cx.bindings.demanded)
        counts = frozenset(size_names(extents(params, launches)))
        missing = given or tuple(size for size in missing if size not in counts)
        if not missing:
            return
        options = " ".join(f"-D {name}=..." for name in missing)
        error = UnboundSize(
            "T2C-F006",
            f"`{missing[0]}` is left unbound, and no tensor's shape gives its value",
            self._name_span(traced),
            help=f"bind it with `{options}`, a default, or a call in the file",
        )
        error.names = missing
        raise error

    def _error(self, code: str, message: str, function: Function | None = None, *, help: str = "") -> Tile2CuError:
        return Tile2CuError(code, message, self._name_span(function or self.kernel.function), help=help)

    def _name_span(self, function: Function) -> Span:
        return self.cx.source.span(function.definition.name)


def _in_terms_of(named: frozenset[str], computed: Expr | None, names: Naming) -> Expr | None:
    """The expression that a constant is computed by, where it consists of constants that the program names."""
    if computed is None or not constant_names(walk(computed)) <= named:
        return None
    return names.apply(computed)


def _annotated_in(function: Function) -> set[str]:
    """The names that the statements of a function's body annotate: `A: T.Tensor(shape, dtype)`."""
    lines = [line.body for line in function.definition.body.body if isinstance(line, cst.SimpleStatementLine)]
    notes = [note for line in lines for note in line if isinstance(note, cst.AnnAssign) and note.value is None]
    return {note.target.value for note in notes if isinstance(note.target, cst.Name)}


def _docstring(function: Function) -> str:
    """The docstring of a function, without its indentation."""
    text = function.definition.get_docstring()
    return text.strip() if text else ""
