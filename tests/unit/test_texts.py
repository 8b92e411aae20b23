"""Plans, the emitter and styles ask typed data; they do not search what they have written.

A regular expression over C++, or a test for a substring, is a question that the printer, the plan or a view lacks.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "transpile" / "tile2cu"
_WRITE = ("plan", "emitter", "styles")
_TESTS = ("startswith", "endswith", "isidentifier", "isdigit", "isalnum", "find", "rfind")
_PARTS = ("partition", "rpartition", "replace")
# What these are about: finished files, sentences that become lines, and names.
_OF_TEXTS = ("line_directives.py", "render.py", "restyle.py", "comments.py", "names.py")
# What else is text there: how many such places a module has, and what they read.
_READS = {
    "plan/copy_claims.py": (1, "a reason of a rule, in words"),
    "plan/ping_pong.py": (1, "the user's name of a tile"),
    "plan/requirements.py": (1, "the name of an architecture"),
    "plan/scalars.py": (1, "the name of a called function"),
    "plan/traversal.py": (1, "the name of a module"),
    "plan/user_functions.py": (2, "names of called functions"),
    "emitter/__init__.py": (1, "the user's comments"),
    "emitter/contract.py": (7, "the user's documentation, his -D, and which constants the sentences of a head name"),
    "emitter/dispatch.py": (1, "the user's documentation"),
    "emitter/execution.py": (3, "the name of an architecture"),
    "emitter/reference.py": (2, "the name of a called function"),
    "emitter/shims.py": (1, "the name of a target"),
    "styles/base/claims.py": (2, "a phrase, in the plural"),
    "styles/base/expressions.py": (9, "names of called functions, a number's digits, a sign before a sign, tl::"),
    "styles/base/layouts.py": (1, "the name of a rule"),
    "styles/base/loops.py": (1, "whether a trip count needs a name"),
    "styles/base/ping_pong.py": (1, "the user's name of a tile"),
    "styles/base/statements.py": (1, "the target's word for blocks"),
    "styles/ck/elementwise.py": (1, "the name of a tile"),
    "styles/ck/fragments.py": (2, "the words of an error"),
    "styles/cute/fragments.py": (1, "the words of an error"),
    "styles/cute/kernel.py": (2, "whether a factor needs brackets"),
    "styles/tl/operations.py": (1, "the user's message, as a literal of C++"),
}


def searches(source: str) -> int:
    """How often a module uses regular expressions, tests for a substring, or takes texts apart."""
    return sum(1 for node in ast.walk(ast.parse(source)) if any(_asks(node)))


def _asks(node: ast.AST) -> Iterator[bool]:
    match node:
        case ast.Attribute(value=ast.Name(id="re")):
            yield True
        case ast.Compare(left=ast.Constant(value=str()) | ast.JoinedStr(), ops=[ast.In() | ast.NotIn()]):
            yield True
        case ast.Call(func=ast.Attribute(attr=method), args=args):
            has_text = any(isinstance(each, ast.Constant | ast.JoinedStr) for each in args)
            yield method in _TESTS or method in ("removeprefix", "removesuffix") or (method in _PARTS and has_text)


def counted() -> dict[str, int]:
    """The places of each module that has some."""
    paths = [path for folder in _WRITE for path in sorted((ROOT / folder).rglob("*.py"))]
    read = [path for path in paths if path.name not in _OF_TEXTS]
    found = {path.relative_to(ROOT).as_posix(): searches(path.read_text(encoding="utf-8")) for path in read}
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("import re\nwords = re.findall(pattern, text)", 1),
        ("is_tma = 'tma_load(' in text", 1),
        ("has_name = f'{name}(' in view.text", 1),
        ("if section.title.startswith('registers'): pass", 1),
        ("name = place.partition('(')[0]", 1),
        ("text = text.replace('half', 'half_t')", 1),
        ("is_read = name in noted", 0),
        ("view = replace(view, comments=())", 0),
        ("partition = self.fragments.partition(layout, span)", 0),
    ],
)
def test_the_ways_to_search_texts_are_counted(source: str, count: int) -> None:
    assert searches(source) == count


def test_no_module_searches_what_it_has_written() -> None:
    found, known = counted(), {name: count for name, (count, _) in _READS.items()}
    assert found == known, "ask the plan, the printer or the view; other texts are named in _READS"
