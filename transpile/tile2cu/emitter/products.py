"""Products: their calls, and what stands before and after them where they run by themselves."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tile2cu.core.decisions import (
    AWAITED_AT,
    INSTRUCTION,
    NO_SETMAXNREG,
    NO_WGMMA,
    NOT_IN_FLIGHT,
    PROXY_FENCE,
    RETIRED,
    RETIRED_BEFORE,
    SETMAXNREG,
    WAVE_PRIORITY,
)
from tile2cu.core.facts import Facts
from tile2cu.core.program import Await, Buffer, Copy, Gemm, SetRegisters, Stmt, walk_stmts
from tile2cu.emitter.comments import BODY_WIDTH, listed, wrapped
from tile2cu.emitter.view import StatementView

if TYPE_CHECKING:
    from tile2cu.emitter.statements import Statements


def product_call(op: Gemm, statements: "Statements") -> Mapping[str, str]:
    a, b, c = (statements.tile(region) for region in (op.a, op.b, op.c))
    arguments = [
        f"tl::transposed({a})" if op.transpose_a else a,
        f"tl::transposed({b})" if op.transpose_b else b,
        c,
    ]
    name = "gemm_fma" if statements.facts[op, INSTRUCTION] == "fma" else "gemm"
    if op.metadata is not None:
        name = "gemm_sparse"
        metadata = statements.tile(op.metadata)
        arguments.insert(1, f"tl::transposed({metadata})" if op.transpose_metadata else metadata)
    elif statements.facts.get(op, AWAITED_AT) is not None or statements.facts.get(op, RETIRED) is not None:
        name = "gemm_start"
    if op.clear_if is not None and on_wgmma(op, statements.facts):
        arguments.append(f"tl::overwrite_if({statements.printer.text(op.clear_if)})")
    parts = {"name": name, "template": "", "arguments": ", ".join(arguments + ["tl::overwrite"] * op.clear)}
    priority = _priority(op, statements)
    return parts | {"priority": str(priority)} if priority else parts


def _priority(op: Gemm, statements: "Statements") -> int:
    """Of waves during the product; 0 is what they have at other times."""
    return statements.facts.get(op, WAVE_PRIORITY) or 0


def product_comments(op: Gemm, statements: "Statements") -> tuple[str, ...]:
    """Why a product does not run on the tensor cores, or not as its types say, or not by itself."""
    facts = statements.facts
    rule = facts.rule(op, WAVE_PRIORITY) if _priority(op, statements) else ""
    first = (f"waves at this product go before the others of their SIMD, as asked for  [{rule}]",) if rule else ()
    if not op.begun or facts.get(op, AWAITED_AT) is not None:
        return first + _instruction_comments(op, statements)
    key = next((key for key in (NOT_IN_FLIGHT, NO_WGMMA) if facts.get(op, key) is not None), None)
    because = f": {facts[op, key]}  [{facts.rule(op, key)}]" if key is not None else ""
    return (f"waited for at once{because}", *first, *_instruction_comments(op, statements))


def before(stmt: Stmt, statements: "Statements") -> Iterator[StatementView]:
    """The fence before a statement that shows stores to wgmma, and to TMA."""
    tiles = statements.facts.get(stmt, PROXY_FENCE)
    if tiles is not None:
        names = listed([statements.printer.names(name) for name in tiles.split(", ")])
        rule = statements.facts.rule(stmt, PROXY_FENCE)
        copies = (op for op in walk_stmts(statements.settled.launch.body) if isinstance(op, Copy) and op.begun)
        stored = {op.src.buffer.memory.name for op in copies}
        reader = "TMA" if stored >= set(tiles.split(", ")) else "wgmma"
        said = f"{reader} does not read as threads do: what they stored to {names} is shown to it  [{rule}]"
        text = {"text": "tl::fence_async_proxy();"}
        yield StatementView("line", text, stmt.span.line, tuple(wrapped(said, BODY_WIDTH)))


def cleared(op: Gemm, above: list[str], statements: "Statements") -> Iterator[StatementView]:
    """The branch that clears the result of a product whose instruction cannot."""
    if op.clear_if is not None and not on_wgmma(op, statements.facts):
        clear = StatementView("line", {"text": f"tl::clear({statements.tile(op.c)});"}, op.span.line)
        condition = {"condition": statements.printer.text(op.clear_if)}
        yield StatementView("branch", condition, op.span.line, tuple(above), (clear,))


def after(op: Gemm, statements: "Statements") -> Iterator[StatementView]:
    """The wait of a product that is waited for at once while others are in flight, which end with it."""
    if statements.facts.get(op, RETIRED) is not None:
        about = "until this product and those begun before it are done"
        yield StatementView("line", {"text": _wait(op, 0, statements, op.c.buffer)}, op.span.line, (about,))


def landed(stmt: Stmt, statements: "Statements") -> Iterator[StatementView]:
    """The wait for products in flight before a statement that needs them."""
    landing = statements.facts.get(stmt, RETIRED_BEFORE)
    if landing is not None:
        results = ", ".join(map(statements.printer.tile, landing.results))
        flying = [statements.printer.tile(tile) for tile in landing.flying]
        about = f"  // {listed(flying)} {'stays' if len(flying) == 1 else 'stay'} in flight" if flying else ""
        yield StatementView("line", {"text": f"tl::gemm_wait<{len(flying)}>({results});{about}"}, stmt.span.line)


def awaited(stmt: Await, statements: "Statements") -> StatementView:
    return StatementView("line", {"text": _wait(stmt, stmt.pending, statements)})


def registers_set(stmt: SetRegisters, statements: "Statements") -> StatementView:
    """The instruction, or why it is left out."""
    if statements.facts.get(stmt, SETMAXNREG):
        call = "take_registers" if stmt.more else "give_registers"
        return StatementView("line", {"text": f"tl::{call}<{stmt.count}>();"})
    left_out = statements.facts.fact(stmt, NO_SETMAXNREG)
    lines = wrapped(f"left out: {left_out.value}  [{left_out.rule}]", BODY_WIDTH)
    return StatementView("line", {"text": "\n".join(f"// {line}" for line in lines)})


def _wait(stmt: Stmt, pending: int, statements: "Statements", *own: Buffer) -> str:
    """The wait for products that were started, of which `pending` may stay in flight."""
    landing = statements.facts[stmt, RETIRED]
    results = {id(tile): tile for tile in (*own, *landing.results)}.values()
    return f"tl::gemm_wait<{pending}>({', '.join(map(statements.printer.tile, results))});"


def on_wgmma(op: Gemm, facts: Facts) -> bool:
    """Whether a product is one of wgmma's."""
    return str(facts[op, INSTRUCTION]).startswith("wgmma")


def _instruction_comments(op: Gemm, statements: "Statements") -> tuple[str, ...]:
    instruction, rule = str(statements.facts[op, INSTRUCTION]), statements.facts.rule(op, INSTRUCTION)
    a, b, c = (region.buffer.dtype for region in (op.a, op.b, op.c))
    arch = statements.settled.target.arch
    if instruction == "fma":
        return (f"no tensor core of {arch} multiplies {a} by {b} into {c}: each thread multiplies and adds  [{rule}]",)
    _, _, through = instruction.partition(" through ")
    multiplied = str(a) if a == b else f"{a} by {b}, both"
    return (
        (f"{arch} multiplies {multiplied} as {through}, which holds its values exactly  [{rule}]",) if through else ()
    )
