"""A listing of the Program of a kernel's source, which the tests of the front end compare."""

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Binary, Call, Const, Expr, Load, Named, Unary, Var
from tile2cu.core.program import (
    Assert,
    Assign,
    Atomic,
    AtomicTile,
    Break,
    Buffer,
    CallStmt,
    Continue,
    Copy,
    Declare,
    Fill,
    Gemm,
    If,
    Let,
    Loop,
    Parallel,
    Print,
    Program,
    Reduce,
    Region,
    Scan,
    Stmt,
    Store,
    Swizzle,
    Sync,
    While,
)
from tile2cu.frontend import programs

TEMPLATE = """\
import math
import tilelang
import tilelang.language as T
{module}
@tilelang.jit(out_idx=[-1])
def kernel({parameters}):
{factory}
    @T.prim_func
    def main({tensors}):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
{body}
    return main
"""


class Trace(Protocol):
    def __call__(self, text: str, **bindings: object) -> Program: ...


class Body(Protocol):
    def __call__(
        self,
        body: str,
        *,
        parameters: str = ...,
        factory: str = ...,
        module: str = ...,
        tensors: str = ...,
        **D: object,
    ) -> Program: ...


@pytest.fixture
def trace() -> Trace:
    """The Program of a file's only kernel."""

    def run(text: str, **bindings: object) -> Program:
        (program,) = programs(Path("test.py"), textwrap.dedent(text), kernel=None, bindings=bindings)
        return program

    return run


@pytest.fixture
def body(trace: Trace) -> Body:
    """The Program of a kernel whose body is given; `A` and `B` are (M, N) tensors of float32."""

    def run(
        body: str,
        *,
        parameters: str = "M, N, block_M=64",
        factory: str = "pass",
        module: str = "",
        tensors: str = 'A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")',
        **bindings: object,
    ) -> Program:
        text = TEMPLATE.format(
            module=textwrap.dedent(module),
            parameters=parameters,
            factory=textwrap.indent(textwrap.dedent(factory), " " * 4),
            tensors=tensors,
            body=textwrap.indent(textwrap.dedent(body), " " * 12),
        )
        return trace(text, **bindings)

    return run


@pytest.fixture
def listing() -> Callable[[Program], list[str]]:
    """The statements of a program's launches, one a line, indented by two a level."""

    def run(program: Program) -> list[str]:
        return [line for launch in program.launches for line in lines(launch.body)]

    return run


@pytest.fixture
def refusal(body: Body) -> Callable[..., str]:
    """The code and message of the diagnostic that a body gets."""

    def run(*arguments: str, **options: str) -> str:
        with pytest.raises(Tile2CuError) as caught:
            body(*arguments, **options)
        return f"{caught.value.code[-4:]} {caught.value.message}"

    return run


def text(expr: object) -> str:
    """An expression as it could be written in Python."""
    match expr:
        case Const():
            return str(expr.value) if expr.weak else f"{expr.dtype}({expr.value})"
        case Named() | Var():
            return expr.name
        case Unary():
            return f"({expr.op} {text(expr.operand)})" if expr.op == "not" else f"{expr.op}{text(expr.operand)}"
        case Binary():
            return f"({text(expr.lhs)} {expr.op} {text(expr.rhs)})"
        case Call(function="cast"):
            return f"{expr.dtype}({text(expr.args[0])})"
        case Call():
            return f"{expr.function}({', '.join(map(text, expr.args))})"
        case Load():
            assert isinstance(expr.buffer, Buffer)
            return element(expr.buffer, expr.indices)
    raise AssertionError(f"not an expression: {expr!r}")


def element(buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    return f"{buffer.name}[{', '.join(map(text, indices))}]"


def region(found: Region) -> str:
    """`A[start:+extent, index]`; the bare name where it is the whole buffer."""
    if found.whole and found.kept == tuple(range(found.buffer.rank)):
        return found.buffer.name
    parts = [
        f"{text(each.start)}:+{text(each.extent)}" if dim in found.kept else text(each.start)
        for dim, each in enumerate(found.ranges)
    ]
    return f"{found.buffer.name}[{', '.join(parts)}]"


def lines(body: tuple[Stmt, ...]) -> Iterator[str]:
    for stmt in body:
        yield simple(stmt)
        match stmt:
            case Loop() | Parallel() | While():
                yield from ("  " + line for line in lines(stmt.body))
            case If():
                yield from ("  " + line for line in lines(stmt.then))
                if stmt.orelse:
                    yield "else"
                    yield from ("  " + line for line in lines(stmt.orelse))
            case _:
                pass


def simple(stmt: Stmt) -> str:
    """A statement on one line, without its body."""
    match stmt:
        case Store():
            return f"{element(stmt.buffer, stmt.indices)} {stmt.op}= {text(stmt.value)}"
        case Let():
            return f"let {stmt.var.name}: {stmt.var.dtype} = {text(stmt.value)}"
        case Declare():
            return f"var {stmt.var.name}: {stmt.var.dtype} = {None if stmt.init is None else text(stmt.init)}"
        case Assign():
            return f"{stmt.var.name} {stmt.op}= {text(stmt.value)}"
        case Loop() | Parallel() | If() | While():
            return header(stmt)
        case _:
            return operation(stmt)


def header(stmt: Stmt) -> str:
    match stmt:
        case If():
            return f"if {text(stmt.condition)}"
        case While():
            return f"while {text(stmt.condition)}"
        case Loop():
            stages = f", stages={stmt.num_stages}" if stmt.num_stages else ""
            return (
                f"{stmt.kind.value} {stmt.var.name} in {text(stmt.start)}:{text(stmt.stop)}:{text(stmt.step)}{stages}"
            )
        case Parallel():
            return f"parallel {', '.join(v.name for v in stmt.vars)} in {', '.join(map(text, stmt.extents))}"
    raise AssertionError(f"no body: {stmt!r}")


def operation(stmt: Stmt) -> str:
    match stmt:
        case Copy():
            return f"copy {region(stmt.src)} -> {region(stmt.dst)}"
        case Gemm():
            flags = "".join(f", {name}" for name in ("transpose_a", "transpose_b", "clear") if getattr(stmt, name))
            operands = ", ".join(map(region, (stmt.a, stmt.b, stmt.c)))
            return f"gemm {operands}, {stmt.policy.value or 'no policy'}{flags}"
        case Fill():
            return f"{'clear' if stmt.is_clear else 'fill'} {region(stmt.dst)} with {text(stmt.value)}"
        case Reduce():
            return f"reduce_{stmt.kind.value} {stmt.src.name} -> {stmt.dst.name}, dim={stmt.dim}, clear={stmt.clear}"
        case _:
            return effect(stmt)


def effect(stmt: Stmt) -> str:
    match stmt:
        case Swizzle():
            return f"swizzle {stmt.panel} {stmt.order}"
        case Atomic():
            return f"atomic_{stmt.kind.value} {element(stmt.buffer, stmt.indices)}, {text(stmt.value)}"
        case AtomicTile():
            return f"atomic_{stmt.kind.value} {region(stmt.src)} -> {region(stmt.dst)}"
        case Scan():
            back = " reversed" if stmt.reverse else ""
            return f"scan_{stmt.kind.value} {stmt.src.name} -> {stmt.dst.name}, dim={stmt.dim}{back}"
        case Sync() | Break() | Continue():
            return type(stmt).__name__.lower()
        case Assert():
            return f"assert {text(stmt.condition)}, {stmt.message!r}"
        case Print():
            return f"print({text(stmt.what) if isinstance(stmt.what, Expr) else stmt.what.name}, {stmt.message!r})"
        case CallStmt():
            return text(stmt.call)
    raise AssertionError(f"not a statement: {stmt!r}")
