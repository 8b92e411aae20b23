"""What a program for TileLang would need to change to import tile2cu.tilelang instead, line by line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tile2cu.api import resolved_kernels
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.files import read_python
from tile2cu.frontend import driver_arguments, kernel_names
from tile2cu.targets import Target
from tile2cu.tilelang.counterparts import Status, counterpart
from tile2cu.tilelang.notes import WITHOUT_EFFECT
from tile2cu.tilelang.options import PASS_CONFIGS

_ROOTS = ("tilelang", "tvm")
_COMPILERS = ("tilelang.jit", "tilelang.lazy_jit", "tilelang.compile", "tilelang.par_compile")


class Finding(Record, frozen=True, order=True):
    """One line of the program. A finding is `blocking` where the program would not run as it does with TileLang."""

    line: int
    text: str
    blocking: bool = False


def findings(text: str) -> list[Finding]:
    """What the lines of a program import and use of TileLang. Raises SyntaxError."""
    tree = ast.parse(text)
    aliases: dict[str, str] = {}
    found: set[Finding] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(_imports(node, aliases))
    outer = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in outer:
            name = _qualified(node, aliases)
            found.update(_use(name, node.lineno) if name is not None else ())
        elif isinstance(node, ast.Call) and _qualified(node.func, aliases) in _COMPILERS:
            found.update(_arguments(node))
    return sorted(found)


def refusals(path: Path, target: Target) -> tuple[int, list[Tile2CuError]]:
    """How many kernels a file has, and the errors of those that cannot be transpiled as its driver calls them."""
    text = read_python(path)
    names = kernel_names(text, path)
    errors: list[Tile2CuError] = []
    for name in names:
        try:
            given = driver_arguments(path, text, name)
            resolved_kernels(path, kernel=name, target=target, bindings=given, text=text)
        except Tile2CuError as error:
            errors.append(error)
    return len(names), errors


def _imports(node: ast.Import | ast.ImportFrom, aliases: dict[str, str]) -> Iterator[Finding]:
    """The changed line of an import; notes what it binds in `aliases`."""
    yield from _imports_from(node, aliases) if isinstance(node, ast.ImportFrom) else _modules(node, aliases)


def _imports_from(node: ast.ImportFrom, aliases: dict[str, str]) -> Iterator[Finding]:
    module = node.module or ""
    if node.level or module.partition(".")[0] not in _ROOTS:
        return
    for each in node.names:
        aliases[each.asname or each.name] = f"{module}.{each.name}"
        yield from _use(f"{module}.{each.name}", node.lineno)
    if (module, node.names[0].name) == ("tvm", "DataType"):
        yield Finding(node.lineno, "write `from tile2cu.tilelang import DataType`")
    elif module.partition(".")[0] == "tilelang":
        yield Finding(node.lineno, f"write `from tile2cu.{module} import {_names(node)}`")


def _modules(node: ast.Import, aliases: dict[str, str]) -> Iterator[Finding]:
    for each in node.names:
        root = each.name.partition(".")[0]
        if root not in _ROOTS:
            continue
        aliases[each.asname or root] = each.name if each.asname else root
        if root == "tvm":
            yield from _use(each.name, node.lineno)
        elif each.asname or "." not in each.name:
            yield Finding(node.lineno, f"write `import tile2cu.{each.name} as {each.asname or each.name}`")
        else:
            yield Finding(node.lineno, f"write `import tile2cu.{each.name}`, and `import tile2cu.tilelang as tilelang`")


def _names(node: ast.ImportFrom) -> str:
    return ", ".join(f"{each.name} as {each.asname}" if each.asname else each.name for each in node.names)


def _qualified(node: ast.expr, aliases: dict[str, str]) -> str | None:
    """The qualified name of `T.gemm` or `tilelang.profiler.do_bench`, if it is TileLang's."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *reversed(names)])


def _use(name: str, line: int) -> Iterator[Finding]:
    """What is to be said of a name. Those of the language are the kernels': transpiling says what of them is wrong."""
    key = name.rpartition(".")[2]
    if "PassConfigKey." in name:
        reason = PASS_CONFIGS.get(key)
        if key != "TL_DISABLE_THREAD_STORAGE_SYNC":
            yield Finding(line, f"{key} has no effect: {reason or 'tile2cu has no such pass'}")
        return
    part = counterpart(name)
    if part is not None and part.status is Status.MISSING:
        yield Finding(line, f"{name} is missing: {part.note}", blocking=True)
    elif part is not None and part.status is Status.IGNORED:
        yield Finding(line, f"{name} has no effect: {part.note}")


def _arguments(node: ast.Call) -> Iterator[Finding]:
    for each in node.keywords:
        if each.arg is not None and each.arg in WITHOUT_EFFECT:
            yield Finding(each.value.lineno, f"`{each.arg}` has no effect: {WITHOUT_EFFECT[each.arg]}")
