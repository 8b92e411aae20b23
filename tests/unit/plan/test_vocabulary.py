"""The names of headers/tl stand in the vocabularies of styles: elsewhere their number only falls."""

import ast
from pathlib import Path

import tile2cu

ROOT = Path(tile2cu.__file__).parent
VOCABULARIES = tuple(f"styles/{style}/vocabulary.py" for style in ("base", "tl", "cute", "ck"))
# String literals with `tl::` that are still printed elsewhere, by file.
REMAINING = {
    "core/decisions.py": 1,
    "core/dtype.py": 2,
    "emitter/contract.py": 3,
    "emitter/host.py": 8,
    "emitter/manifest.py": 1,
    "emitter/tma.py": 1,
    "explain.py": 3,
    "rules/layout/gemm.py": 1,
    "rules/select.py": 2,
    "rules/memory/storage.py": 1,
    "rules/launch/threads.py": 1,
    "styles/base/expressions.py": 26,
    "styles/tl/layouts.py": 13,
}


def _literals(path: Path) -> int:
    """The string literals with `tl::` in a file, docstrings apart."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documents) and node.body and isinstance(node.body[0], ast.Expr)
    }
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
    return sum(isinstance(node.value, str) and "tl::" in node.value for node in texts)


def test_names_of_the_library_stand_in_the_vocabulary() -> None:
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
    found = {name: count for name, path in paths.items() if (count := _literals(path)) and name not in VOCABULARIES}
    assert found == REMAINING, "a literal was added, or REMAINING lags behind what was removed"


def test_the_plan_has_no_text_of_a_style() -> None:
    for path in sorted((ROOT / "plan").glob("*.py")):
        assert not _literals(path), path
        assert "tile2cu.styles" not in path.read_text(encoding="utf-8"), path


def test_a_literal_is_found_where_a_docstring_is_not(tmp_path: Path) -> None:
    source = tmp_path / "printed.py"
    source.write_text(
        '"""Prints tl::copy."""\n\n\ndef printed(a):\n    """As tl::copy."""\n    return f"tl::copy({a})"\n',
        encoding="utf-8",
    )
    assert _literals(source) == 1
