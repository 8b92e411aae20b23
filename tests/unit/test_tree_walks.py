"""Rules, passes and the emitter ask analysis/ about statements; where they still walk the tree themselves is counted.

The counts beside this test may only shrink: a new walk is a query that analysis/ lacks.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "transpile" / "tile2cu"
_ANALYSIS = "tile2cu.analysis."
_MAY_WALK = ("analysis", "chooser", "core", "frontend")  # the folders whose work is the tree: chooser/ counts its work
_LOWERS = (
    "plan/body.py",
    "styles/tl/body.py",
    "styles/cute/elementwise.py",
    "styles/cute/kernel.py",
    "styles/ck/elementwise.py",
    "styles/ck/kernel.py",
)  # the tree to a plan, and a plan's own branches to text
ALLOWED: dict[str, int] = json.loads(Path(__file__).with_name("tree_walks.json").read_text(encoding="utf-8"))


def walks(source: str) -> int:
    """How often a module walks statements: `walk_stmts`, the arms of branches, `bodies`, loops over a body.

    A loop over what a function of analysis/ returns is none.
    """
    nodes = list(ast.walk(ast.parse(source)))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(_ANALYSIS))
    asked = {name.asname or name.name for node in imports for name in node.names}
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    called = [node for node in calls if isinstance(node, ast.Name) and node.id in ("bodies", "walk_stmts")]
    arms = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("then", "orelse"))
    loops = (node.iter for node in nodes if isinstance(node, ast.For | ast.comprehension))
    iterated = (part for of in loops for part in _iterated(of, asked))
    bodies = (part for part in iterated if isinstance(part, ast.Attribute) and part.attr == "body")
    return sum(1 for found in (called, arms, bodies) for _ in found)


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


def test_no_module_walks_the_tree_more_often_than_it_did() -> None:
    grown = {name: (ALLOWED.get(name, 0), count) for name, count in counted().items() if count > ALLOWED.get(name, 0)}
    assert not grown, "ask analysis/ (allowed, found)"


def test_what_is_allowed_is_what_there_is() -> None:
    found = counted()
    shrunk = {name: (count, found.get(name, 0)) for name, count in ALLOWED.items() if found.get(name, 0) < count}
    assert not shrunk, "lower the counts in tree_walks.json, which may not grow back (allowed, found)"
