"""The names of headers/tl stand in the vocabularies of styles, and nowhere else in Python."""

import ast
from pathlib import Path

import tile2cu

ROOT = Path(tile2cu.__file__).parent
VOCABULARIES = tuple(f"styles/{style}/vocabulary.py" for style in ("base", "tl", "cute", "ck"))
# The names of element types, which styles, launchers and the manifest share.
_TYPES = "core/dtype.py"


def _literals(path: Path) -> int:
    """The string literals with `tl::` in a file, docstrings apart."""
    text = path.read_text(encoding="utf-8")
    if "tl::" not in text:
        return 0
    tree = ast.parse(text)
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
    assert all(_literals(paths[name]) for name in VOCABULARIES)
    assert not [name for name, path in paths.items() if name not in (*VOCABULARIES, _TYPES) and _literals(path)]


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
