"""Rules, passes and the emitter ask analysis/ about statements, and rewrite by core/rebuild.py; they walk no tree.

A walk elsewhere is a query that analysis/ lacks.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "transpile" / "tile2cu"
_ANALYSIS = "tile2cu.analysis."
_MAY_WALK = ("analysis", "chooser", "core", "frontend")  # the folders whose work is the tree: chooser/ counts its work
_LOWERS = (
    "plan/body.py",
    "plan/structure.py",
    "styles/base/elements.py",
    "styles/base/statements.py",
    "styles/tl/body.py",
    "styles/cute/elementwise.py",
    "styles/ck/elementwise.py",
)  # the tree to a plan, a plan's own branches, and those to text
_TRAVERSALS = ("bodies", "walk_stmts")


def walks(source: str) -> int:
    """How often a module walks statements: traversals of core/, arms, loops over a body, patterns that capture one.

    A loop over what a function of analysis/ returns is none.
    """
    nodes = list(ast.walk(ast.parse(source)))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(_ANALYSIS))
    asked = {name.asname or name.name for node in imports for name in node.names}
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    called = [node for node in calls if isinstance(node, ast.Name) and node.id in _TRAVERSALS]
    arms = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("then", "orelse"))
    matched = (node for node in nodes if isinstance(node, ast.MatchClass))
    parts = (pair for node in matched for pair in zip(node.kwd_attrs, node.kwd_patterns, strict=True))
    captured = [name for name, pattern in parts if isinstance(pattern, ast.MatchAs) and pattern.pattern is None]
    taken_apart = [name for name in captured if name in ("then", "orelse", "body")]
    loops = (node.iter for node in nodes if isinstance(node, ast.For | ast.comprehension))
    iterated = (part for of in loops for part in _iterated(of, asked))
    bodies = (part for part in iterated if isinstance(part, ast.Attribute) and part.attr == "body")
    return sum(1 for found in (called, arms, taken_apart, bodies) for _ in found)


def _iterated(of: ast.AST, asked: set[str]) -> Iterator[ast.AST]:
    """The parts of what a loop iterates over, but for what it asks the functions `asked` about."""
    yield of
    if not (isinstance(of, ast.Call) and isinstance(of.func, ast.Name) and of.func.id in asked):
        for part in ast.iter_child_nodes(of):
            yield from _iterated(part, asked)


def counted() -> dict[str, int]:
    """The walks of each module that has some, outside the folders that may."""
    paths = ((path, path.relative_to(ROOT)) for path in sorted(ROOT.rglob("*.py")))
    found = {
        str(name): walks(path.read_text(encoding="utf-8")) for path, name in paths if name.parts[0] not in _MAY_WALK
    }
    return {name: count for name, count in found.items() if count and name not in _LOWERS}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("found = list(walk_stmts(body))", 1),
        ("arms = branch.then, branch.orelse", 2),
        ("match stmt:\n    case If(then=then, orelse=orelse): pass", 2),
        ("match stmt:\n    case Loop(body=(Copy() as copy,)): pass", 0),
        ("found = [run(below) for below in bodies(stmt)]", 1),
        ("for stmt in loop.body: pass", 1),
        ("found = [each for each in reversed(loop.body)]", 1),
        ("from tile2cu.analysis.uses import statements\nfor stmt in statements(loop.body, Copy): pass", 0),
        ("for stmt in statements(loop.body, Copy): pass", 1),
        ("run(loop.body)\nfrom tile2cu.core.program import walk_stmts", 0),
    ],
)
def test_the_ways_to_walk_are_counted(source: str, count: int) -> None:
    assert walks(source) == count


def test_no_module_walks_the_tree() -> None:
    assert not counted(), "ask analysis/ (by module, the walks found)"
