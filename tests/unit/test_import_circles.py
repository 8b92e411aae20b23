"""No module imports one that imports it, not for types alone either, nor when a function runs."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "transpile"


def modules(sources: Path) -> dict[str, Path]:
    """The modules of all packages in a folder, by their dotted names."""
    paths = ((path, path.relative_to(sources).with_suffix("")) for path in sources.rglob("*.py"))
    return {".".join(name.parts).removesuffix(".__init__"): path for path, name in paths}


def statements(parent: ast.AST) -> Iterator[ast.AST]:
    """All statements below one; no expression has an import."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for each in getattr(parent, name, ()):
            yield each
            yield from statements(each)


def imported(source: str, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a module imports from, anywhere."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                module = f"{node.module}.{each.name}"
                yield module if module in known else node.module
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def circle(sources: Path) -> list[str]:
    """The modules of a circle of imports; none where there is none."""
    known = modules(sources)
    imports = {name: set(imported(path.read_text(encoding="utf-8"), known)) for name, path in known.items()}
    try:
        TopologicalSorter({name: found & known.keys() - {name} for name, found in imports.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize(
    "back", ["from p.a import f", "import p.a", "if TYPE_CHECKING:\n    from p import a", "def g(): from p.a import f"]
)
def test_a_circle_is_found(tmp_path: Path, back: str) -> None:
    package = tmp_path / "p"
    package.mkdir()
    for name, text in {"__init__": "", "a": "from p.b import g", "b": back}.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    assert set(circle(tmp_path)) == {"p.a", "p.b"}
    (package / "b.py").write_text("import os", encoding="utf-8")
    assert circle(tmp_path) == []


def test_the_transpiler_has_no_circle() -> None:
    assert circle(SOURCES) == []
