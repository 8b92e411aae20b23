"""The order in which a kernel's source issues copies and MMAs, waits for them, and uses what they bring: a trace.

Loops whose trip count only a call decides run `ITERATIONS` times. The trace is that of a consumer: branches of a
producer are left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random

from tests.golden.source_text import KernelText, Values, arguments, closing, function, value

ITERATIONS = 6
_Stepped = tuple[Iterable["Event"], int]  # what a step does, and where the next one starts
_ASYNC = "cp_async_commit|cp_async_wait|copy_async(?:_once)?|gemm_start_slab|gemm_start|gemm_wait|gemm"
_STEP = re.compile(
    r"auto (?P<lambda>\w+) = \[&\](?P<params>\([^)]*\))?[^{;]*\{"
    r"|\bfor \((?P<for>)|\bif (?:constexpr )?\((?P<if>)"
    r"|const int (?P<names>[^;{}]+);"
    rf"|tl::(?P<async>{_ASYNC})(?:<(?P<count>[^(;]*?)>)?\("
    r"|\b(?P<tile>\w+)\[(?P<k>[^\[\]%]+) % (?P<stages>\w+)\]"
    r"|(?<![\w.:])(?P<call>\w+)\("
)


@dataclass(frozen=True)
class Event:
    """A step of a trace: what is called, for a tile of which number, in which comment's words."""

    kind: str
    of: tuple[str, ...] = ()
    number: int = 0
    comment: str = ""


class _Known(Values):
    """Names and their values; others have none."""

    def __missing__(self, name: str) -> object:
        return function(name)


@dataclass(frozen=True)
class _Scope:
    names: dict[str, int]
    lambdas: dict[str, tuple[tuple[str, ...], str]]
    second: bool  # of two branches between which the source does not decide

    def value(self, expression: str) -> int | None:
        """What an expression is, None where that is not known."""
        try:
            return value(expression, _Known(self.names, {}, Random(0)))
        except (NameError, SyntaxError, TypeError):
            return None


def trace(kernel: KernelText, *, second: bool = False) -> list[Event]:
    """What one consumer does; `second`: it takes the `else` of conditions that are not known."""
    bounds = re.findall(r"; (?:\w+) < (?:work\.)?(\w+); \+\+", kernel.body)
    names = dict.fromkeys(bounds, ITERATIONS) | dict.fromkeys(("k_base", "tile_iter", "k_iter"), 0) | kernel.constants
    code = re.sub(r"^ *//.*$", "", kernel.body, flags=re.M)
    return list(_run(code, _Scope(names, {}, second)))


def _run(text: str, scope: _Scope) -> Iterator[Event]:
    at = 0
    while found := _STEP.search(text, at):
        events, at = next(step(found, text, scope) for name, step in _STEPS.items() if found[name] is not None)
        yield from events


def _lambda(found: re.Match[str], text: str, scope: _Scope) -> _Stepped:
    end = closing(text, found.end() - 1)
    params = tuple(each.split()[-1] for each in (found["params"] or "()")[1:-1].split(",") if each)
    scope.lambdas[found["lambda"]] = (params, text[found.end() : end])
    return (), end


def _for(found: re.Match[str], text: str, scope: _Scope) -> _Stepped:
    head = arguments(text, found.end() - 1)
    body, at = _block(text, closing(text, found.end() - 1) + 1)
    scopes = (replace(scope, names=scope.names | number) for number in _numbers(", ".join(head), scope))
    return (event for each in scopes for event in _run(body, each)), at


def _if(found: re.Match[str], text: str, scope: _Scope) -> _Stepped:
    end = closing(text, found.end() - 1)
    condition = text[found.end() : end]
    body, at = _block(text, end + 1)
    other = ""
    if follows := re.compile(r"\s*else\b").match(text, at):
        other, at = _block(text, follows.end())
    if "producer_acquire" in body:
        return (), at
    known = scope.value(condition)
    taken = bool(known) if known is not None else not (scope.second and other)
    return _run(body if taken else other, scope), at


def _constants(found: re.Match[str], text: str, scope: _Scope) -> _Stepped:
    for name, _, expression in (each.partition("=") for each in arguments(f"({found['names']})", 0)):
        known = scope.value(expression.strip())
        if known is not None and name.strip() not in scope.names:
            scope.names[name.strip()] = known
    return (), found.end()


def _call(found: re.Match[str], text: str, scope: _Scope) -> _Stepped:
    if found["call"] not in scope.lambdas:
        return (), found.end()
    params, body = scope.lambdas[found["call"]]
    given = zip(params, map(scope.value, arguments(text, found.end() - 1)), strict=False)
    known = {name: number for name, number in given if number is not None}
    return _run(body, replace(scope, names=scope.names | known)), found.end()


def _use(found: re.Match[str], text: str, scope: _Scope) -> _Stepped:
    return (Event("use", (found["tile"],), _number(found["k"], scope)),), found.end()


def _asynchronous(found: re.Match[str], text: str, scope: _Scope) -> _Stepped:
    end = closing(text, found.end() - 1) + 1
    given, kind = arguments(text, found.end() - 1), found["async"]
    tiles = [(tile, _number(k, scope)) for each in given for tile, k in re.findall(r"(\w+)\[([^\[\]%]+) % \w+\]", each)]
    if kind.startswith("copy_async"):
        tile, number = tiles[-1] if tiles else (given[-1], 0)
        return (Event("copy_async", (tile,), number),), end
    if kind == "gemm_start_slab":
        given, kind = given[:3], "gemm_start"
    names = tuple(each for each in given if re.fullmatch(r"\w+", each))
    count = scope.value(found["count"]) if kind.endswith("wait") else 0
    assert count is not None, found[0]
    comment = re.compile(r"; *// ([^\n]*)").match(text, end)
    event = Event(kind, names if kind.endswith("wait") else names[-1:], count, comment[1] if comment else "")
    return (*(Event("use", (tile,), k) for tile, k in tiles), event), end


_STEPS: dict[str, Callable[[re.Match[str], str, _Scope], _Stepped]] = {
    "lambda": _lambda, "for": _for, "if": _if, "names": _constants, "async": _asynchronous, "tile": _use, "call": _call,
}  # fmt: skip


def _numbers(head: str, scope: _Scope) -> Iterator[dict[str, int]]:
    """The values of the variable of a loop; one that is not counted runs once."""
    found = re.fullmatch(r"int (\w+) = ([^;]+); \1 < ([^;]+); \+\+\1", head)
    first, stop = (scope.value(found[2]), scope.value(found[3])) if found else (None, None)
    if found is None or first is None:
        yield {}
        return
    yield from ({found[1]: number} for number in range(first, ITERATIONS if stop is None else stop))


def _number(expression: str, scope: _Scope) -> int:
    known = scope.value(expression)
    assert known is not None, expression
    return known


def _block(text: str, at: int) -> tuple[str, int]:
    """A statement or braced block, and its end."""
    start = at + len(text[at:]) - len(text[at:].lstrip())
    if text[start] == "{":
        end = closing(text, start)
        return text[start + 1 : end], end + 1
    end = text.index(";", start) + 1
    return text[start:end], end
