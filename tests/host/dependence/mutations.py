"""Mutants of a kernel: what a pass assumed of its statements may hold no longer.

A statement moves under a branch; the loop around it is left; a tile that it names is changed or read beside it, by its
own name or by a view's; an index is a variable that changes afterwards; `clear_accum` is an expression; a loop's trip
count is a run-time scalar, the largest one, 0 or negative; a condition is on a NaN, compares fractions, or asks a
variable that the iteration has changed; a number is known at run time only; a loaded integer has lost its sign;
iterations access the same elements by twos.
"""

import ast
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from math import prod
from textwrap import dedent, indent

PARAMS = "one: T.int32, unlimited: T.int32, below: T.int32, nothing: T.int32, unordered: T.float32"
SCALARS: dict[str, object] = {"one": 1, "unlimited": 2**31 - 1, "below": -3, "nothing": 0, "unordered": math.nan}

Tiles = dict[str, tuple[int, ...]]
_VARIABLE = 'v = T.alloc_var("int32", 0)'


def mutants(statements: str) -> Iterator[str]:
    """Statements like those given, each time with one difference. Some are no kernels; some read what nothing wrote."""
    return (mutant() for mutant in lazy_mutants(statements))


def lazy_mutants(statements: str) -> Iterator[Callable[[], str]]:
    """The same, each written when it is called: a sample of thousands writes only its own."""
    text = dedent(statements)
    tree = ast.parse(text)
    tiles = dict(_tiles(tree))
    for number, (body, place, loop) in enumerate(_positions(tree.body)):
        for changed in _changed(ast.unparse(body[place]), tiles, loop):
            yield partial(_mutant, text, tiles, number, place, changed)


def _mutant(text: str, tiles: Tiles, number: int, place: int, changed: str) -> str:
    """The statements with another text for the one at a place of the position with this number."""
    mutant = ast.parse(text)  # takes less time than a copy of a tree
    first = next((place for place, stmt in enumerate(mutant.body) if not isinstance(stmt, ast.Assign)), 0)
    there, _, _ = next(islice(_positions(mutant.body), number, None))
    there[place : place + 1] = ast.parse(changed).body
    views = (f"{name}_flat = T.reshape({name}, ({prod(shape)},))" for name, shape in tiles.items())
    used = [line for line in (_VARIABLE, *views) if re.search(rf"\b{line.split()[0]}\b", changed)]
    mutant.body[first:first] = ast.parse("\n".join(used)).body
    return ast.unparse(mutant)


def _tiles(tree: ast.Module) -> Iterator[tuple[str, tuple[int, ...]]]:
    for stmt in tree.body:
        match stmt:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=attr), args=args)):
                if attr in ("alloc_shared", "alloc_fragment"):
                    yield name, ast.literal_eval(args[0])


def _positions(body: list[ast.stmt], loop: str | None = None) -> Iterator[tuple[list[ast.stmt], int, str | None]]:
    """Where statements are, but for those of loops over elements: the body, the place, and the loop's variable."""
    for place, stmt in enumerate(body):
        if isinstance(stmt, ast.Assign) and "alloc" in ast.unparse(stmt):
            continue
        yield body, place, loop
        match stmt:
            case ast.For(target=ast.Name(id=var), body=inner) if "Parallel" not in ast.unparse(stmt.iter):
                yield from _positions(inner, var)
            case ast.If():
                yield from _positions(stmt.body, loop)
                yield from _positions(stmt.orelse, loop)
            case _:
                pass


def _changed(stmt: str, tiles: Tiles, loop: str | None) -> Iterator[str]:
    """The replacements of a statement."""
    inside = indent(stmt, "    ")
    yield f"if bx % 2 == 0:\n{inside}"
    yield f"if below > 0:\n{inside}"
    yield f"if unordered >= 0.0:\n{inside}"
    yield f"if v == 0:\n{inside}\nv = v + 1"
    if loop is not None:
        yield f"{stmt}\nif {loop} == 2:\n    break"
        yield f"{stmt}\nif {loop} == 2:\n    continue"
        if f"{loop} * " in stmt:
            yield stmt.replace(f"{loop} * ", f"{loop} // 2 * ")
    for name, shape in tiles.items():
        yield from _beside(stmt, name, shape)
    for found in islice(re.finditer(r"(?<=[\[ ])\d+(?=[,\]])", stmt.partition("\n")[0]), 2):
        yield f"{stmt[: found.start()]}{found[0]} + v{stmt[found.end() :]}\nv = 1 - v"
    if stmt.startswith("T.gemm("):
        without = re.sub(r", clear_accum=\w+", "", stmt)
        yield f"{without[:-1]}, clear_accum=v % 2 == 0)\nv = v + 1"
        yield f"{without[:-1]}, clear_accum=one == unlimited)"
    yield from _other_values(stmt)
    if counted := re.match(r"(for \w+ in T\.(?:serial|Pipelined)\()(\d+)", stmt):
        for count in (f"one * {counted[2]}", "below", "nothing", f"T.min(unlimited, {counted[2]})"):
            yield f"{counted[1]}{count}{stmt[counted.end() :]}"


def _other_values(stmt: str) -> Iterator[str]:
    """The statement with a number, a condition or a conversion that a pattern of a rule may take for its own."""
    for found in islice(re.finditer(r"(?<= [-+*] )\d+(?=\))", stmt), 2):
        yield f"{stmt[: found.start()]}{found[0]} * one{stmt[found.end() :]}"
    for found in islice(re.finditer(r"(?<=[( ])(\w+) ([<>]=?) (\w+)\b(?=[,:) ])", stmt), 2):
        left, compare, right = found.groups()
        fractions = f"T.cast({left}, 'float32') * 0.3 {compare} T.cast({right}, 'float32') * 0.3"
        yield f"{stmt[: found.start()]}{fractions}{stmt[found.end() :]}"
    for found in islice(re.finditer(r"T\.cast\((\w+\[[^\[\]]*\]), 'int32'\)", stmt), 2):
        yield f"{stmt[: found.start()]}T.cast(T.cast({found[1]}, 'uint8'), 'int32'){stmt[found.end() :]}"
    if (counted := re.match(r"for (\w+) in T\.(?:serial|Pipelined)", stmt)) and "\n    if " in stmt:
        head, *body = stmt.split("\n")
        asked = (re.sub(rf"\b{counted[1]}\b", "(v - 1)", line) if line[4:7] == "if " else line for line in body)
        yield "\n".join((head, "    v = v + 1", *asked))


def _beside(stmt: str, name: str, shape: tuple[int, ...]) -> Iterator[str]:
    """The statement, with a tile that changes after it, or is read before it."""
    indices = ", ".join(("a", "b", "c", "d")[: len(shape)])
    extents = ", ".join(map(str, shape))
    yield f"{stmt}\nfor {indices} in T.Parallel({extents}):\n    {name}[{indices}] = {name}[{indices}] + 1"
    yield f"{stmt}\nfor a in T.Parallel({prod(shape)}):\n    {name}_flat[a] = {name}_flat[a] + 1"
    if len(shape) < 3 and max(shape) <= 64:
        rows = "Y[128, 0]" if len(shape) == 2 else f"Y[192, 0:{shape[0]}]"
        yield f"T.copy({name}, {rows})\n{stmt}"
