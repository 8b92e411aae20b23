"""Damaged kernels: the examples with bytes, tokens or parts of their syntax tree changed, from a seed."""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import random
import tokenize
from collections.abc import Callable
from pathlib import Path

SOURCES = tuple(sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py")))
# Names and numbers that mean something elsewhere: to C, to the preprocessor, to a shell, to Python.
WORDS = (
    "int", "NULL", "EOF", "NAN", "M_PI", "printf", "malloc", "exit", "size_t", "main", "std", "tl", "threadIdx", "half",
    "gr\u00f6\u00dfe", "\u03b1", "__import__", "eval", "self", "T", "None", "True", "lambda", "_", "__", "x" * 300,
)  # fmt: skip
NUMBERS = ("0", "-1", "1", "2**31", "2**63", "10**400", "1e999", "0.1", "1j", "0x7fffffff", "7", "'a'", "None", "()")


def mutated(number: int) -> bytes:
    """The damaged file of that number."""
    rng = random.Random(number)
    text = rng.choice(SOURCES).read_text(encoding="utf-8")
    way = rng.choice((_bytes, _tokens, _tokens, _tree, _tree, _tree, _nested))
    return way(text, rng)


def _bytes(text: str, rng: random.Random) -> bytes:
    """Bytes that are overwritten, removed, inserted or moved."""
    data = bytearray(text.encode())
    for _ in range(rng.randint(1, 8)):
        at, length = rng.randrange(len(data)), rng.randint(1, 40)
        part = bytes(data[at : at + length])
        choices = (
            b"",
            part * 3,
            rng.randbytes(length),
            bytes((rng.randrange(256),)),
            b"\x00",
            b"\xef\xbb\xbf",
            b"\x0c",
        )
        data[at : at + length] = rng.choice(choices)
    return bytes(data)


def _tokens(text: str, rng: random.Random) -> bytes:
    """Names and numbers that become others."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    names = [token.string for token in tokens if token.type == tokenize.NAME]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(tokens))
        token = tokens[at]
        if token.type == tokenize.NAME:
            tokens[at] = token._replace(string=rng.choice((*WORDS, *rng.sample(names, 8))))
        elif token.type == tokenize.NUMBER:
            tokens[at] = token._replace(string=rng.choice(NUMBERS))
        elif token.type == tokenize.OP:
            tokens[at] = token._replace(string=rng.choice((*"+-*/%@<>=,:()[]", "**", "//", "!=", ":=", "->")))
    return tokenize.untokenize((token.type, token.string) for token in tokens).encode()


def _tree(text: str, rng: random.Random) -> bytes:
    """Statements and expressions that change places, go, or appear twice: still Python, but nonsense."""
    tree = ast.parse(text)
    for _ in range(rng.randint(1, 4)):
        with contextlib.suppress(IndexError):  # no such part is left in the file
            rng.choice(_CHANGES)(tree, rng)
    try:
        return ast.unparse(ast.fix_missing_locations(tree)).encode()
    except (ValueError, RecursionError):
        return text.encode()


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    return [node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list) and node.body]


def _drop(tree: ast.AST, rng: random.Random) -> None:
    body = rng.choice(_bodies(tree))
    body[rng.randrange(len(body))] = ast.Pass()


def _move(tree: ast.AST, rng: random.Random) -> None:
    source, target = rng.choice(_bodies(tree)), rng.choice(_bodies(tree))
    target.insert(rng.randint(0, len(target)), copy.deepcopy(rng.choice(source)))


def _exchange(tree: ast.AST, rng: random.Random) -> None:
    """An expression of the file in the place of another."""
    places = [
        (node, field)
        for node in ast.walk(tree)
        for field, value in ast.iter_fields(node)
        if isinstance(value, ast.expr) and not isinstance(getattr(value, "ctx", None), ast.Store | ast.Del)
    ]
    (one, field), (other, name) = rng.choice(places), rng.choice(places)
    setattr(one, field, copy.deepcopy(getattr(other, name)))


def _number(tree: ast.AST, rng: random.Random) -> None:
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    rng.choice(constants).value = rng.choice((0, -1, 1, 3, 2**31, 2**64, 10**100, 0.5, "float16", "", None, True, b"x"))


def _rename(tree: ast.AST, rng: random.Random) -> None:
    """A name of the file, everywhere, as another one."""
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"T", "tilelang"})
    old, new = rng.choice(names), rng.choice(WORDS[:-9])
    for node in ast.walk(tree):
        for field in ("id", "name", "arg"):
            if getattr(node, field, None) == old:
                setattr(node, field, new)


_CHANGES: tuple[Callable[[ast.AST, random.Random], None], ...] = (_drop, _move, _exchange, _exchange, _number, _rename)


def _nested(text: str, rng: random.Random) -> bytes:
    """A statement deep inside of others, or an expression inside of itself."""
    depth = rng.choice((5, 60, 90, 119, 200, 2000))
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    if rng.random() < 0.5:
        deep = "".join(f"{indent}{' ' * level}if True:\n" for level in range(depth)) + f"{indent}{' ' * depth}pass\n"
    else:
        deep = f"{indent}deep = {'(' * depth}1{')' * depth}{' + 1' * depth}\n"
    return "".join((*lines[:at], deep, *lines[at:])).encode()
