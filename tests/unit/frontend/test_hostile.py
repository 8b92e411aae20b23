"""Hostile files end in a diagnostic, quickly: no hang, no Python error, nothing of the file executed."""

import time
from pathlib import Path
from typing import Any

import pytest

import tile2cu
from tile2cu.api import emit_text
from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import programs
from tile2cu.rules.sync.hazards import _Walker
from tile2cu.targets import find

SECONDS = 20.0  # of the processor, not of a busy machine's clock: far above any case (about 1 s), far below a hang

FACTORY = """
import tilelang
import tilelang.language as T
{module}
@tilelang.jit
def kernel(N, block=128):
    {factory}
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block)) as bx:
            {body}
            for i in T.Parallel(block):
                A[bx * block + i] = 0
    return main
"""

IN_A_FACTORY = {
    "endless while": ("F015", "while True: pass"),
    "endless while that grows a list": ("F015", "x = []\n    while True: x.append(x)"),
    "endless while that doubles a list": ("F016", "x = [0]\n    while True: x = x + x"),
    "endless while that doubles a string": ("F016", "x = 'a'\n    while True: x += x"),
    "endless while that squares a number": ("F016", "x = 3\n    while True: x = x * x"),
    "loop over a huge range": ("F015", "for i in range(10 ** 12): pass"),
    "sum of a huge range": ("F016", "x = sum(range(10 ** 10))"),
    "list of a huge range": ("F016", "x = list(range(10 ** 12))"),
    "huge power": ("F016", "x = 10 ** 10 ** 10"),
    "huge power by pow": ("F016", "x = pow(10, 10 ** 9)"),
    "huge shift": ("F016", "x = 1 << 10 ** 12"),
    "huge repetition of a list": ("F016", "x = [0] * 10 ** 12"),
    "huge repetition of a tuple": ("F016", "x = 10 ** 12 * (0,)"),
    "huge repetition of a string": ("F016", "x = 'a' * 10 ** 12"),
    "wide format": ("F016", "x = f'{1:1000000000d}'"),
    "number of many digits": ("F016", "x = int('9' * 90000)"),
    "join of long strings": ("F016", "x = ('a' * 90000).join(['b'] * 60000)"),
    "replace that grows": ("F016", "x = ('a' * 90000).replace('a', 'b' * 90000)"),
    "nested list that doubles, compared": (
        "F015",
        "x, y = [1], [1]\n    for i in range(60): x, y = [x, x], [y, y]\n    assert x == y",
    ),
    "nested list that doubles, printed": ("F015", "x = [1]\n    for i in range(60): x = [x, x]\n    y = f'{x}'"),
    "nested list that doubles, sorted": ("F015", "x = [1]\n    for i in range(60): x = [x, x]\n    y = sorted([x, x])"),
    "nested tuple that doubles, hashed": ("F015", "x = (1,)\n    for i in range(60): x = (x, x)\n    y = {x: 1}"),
    "list that contains itself": ("F015", "x = []\n    x.append(x)\n    assert x == [x]"),
    "list that contains itself, printed": ("F015", "x = []\n    x.append(x)\n    y = str(x)"),
    "comprehension over the product of ranges": (
        "F015",
        "x = [0 for a in range(9999) for b in range(9999) for c in range(9999)]",
    ),
    "generator that is never used": ("F016", "x = sum(1 for a in range(10 ** 9))"),
    "float that overflows": ("F014", "x = 1e308\n    for i in range(9): x = x ** 9"),
    "infinity to an integer": ("F014", "x = int(float('inf'))"),
    "modulo of strings": ("F014", "x = '%1000000000d' % 1"),
    "float index of a huge range": ("F016", "x = 0.5 in range(10 ** 12)"),
    "symbolic doubling": ("F016", "x = N\n    for i in range(99): x = x + x\n    assert x"),
    "recursion without end": ("F015", "f = lambda n: f(n + 1)\n    f(0)"),
    "import by name": ("F013", "x = __import__('os').system('true')"),
    "evaluation of an import": ("F013", 'x = eval(\'__import__("os").system("true")\')'),
    "evaluation with other names": ("F013", "x = eval('1 + 1', {})"),
    "evaluation of statements": ("F013", "x = eval('import os')"),
    "evaluation of no expression": ("F001", "x = eval('1 +')"),
    "evaluation without end": ("F015", "x = 'eval(x)'\n    y = eval(x)"),
    "evaluation of many texts": ("F015", "for i in range(9999): eval(str(i))"),
    "evaluation of nested parentheses": ("F002", "x = eval('(' * 5000 + ')' * 5000)"),
    "execution": ("F013", "exec('import os')"),
    "open": ("F013", "x = open('/etc/passwd').read()"),
    "class of a number": ("F013", "x = (1).__class__.__bases__"),
    "globals of a function": ("F013", "x = (lambda: 0).__globals__"),
    "subclasses of a string": ("F013", "x = ''.__class__.__mro__[1].__subclasses__()"),
    "format that reads attributes": ("F013", "x = '{0.__class__}'.format(1)"),
    "builtins by getattr": ("F010", "x = getattr(T, '__builtins__')"),
    "the class of a value by getattr": ("F013", "x = getattr((), '__class__')"),
    "the globals of a function by getattr": ("F013", "x = getattr(kernel, '__globals__')"),
    "integer that does not fit": ("F016", "A_extent = 2 ** 100\n    block = A_extent"),
}


def refused(text: str, code: str) -> None:
    """A file ends in this diagnostic, in time."""
    start = time.process_time()
    with pytest.raises(Tile2CuError) as caught:
        programs(Path("hostile.py"), text, kernel=None, bindings={})
    assert time.process_time() - start < SECONDS
    assert caught.value.code == f"T2C-{code}", caught.value.render()
    assert len(caught.value.render()) < 5_000


@pytest.mark.parametrize(("code", "statement"), IN_A_FACTORY.values(), ids=IN_A_FACTORY.keys())
def test_factory(code: str, statement: str) -> None:
    refused(FACTORY.format(module="", factory=statement, body="pass"), code)


IN_A_KERNEL = {
    "endless while": ("F026", "while True: pass"),
    "half of a surrogate pair": ("F014", "T.print(A[0], '\\ud800')"),
    "half of a surrogate pair in a format": ("F014", "T.print(A[0], f'{block}\\udfff')"),
    "huge constant index": ("F016", "A[2 ** 70] = 0"),
    "deep expression of a helper": ("F016", "A[0] = grow(A[0])"),
    "recursive macro": ("F015", "again(A)"),
    "too many statements by a helper": ("F015", "fill(A)"),
    "shape of a huge tile": ("F016", "S = T.alloc_shared((2 ** 70,), 'float32')"),
    "negative shape": ("F023", "S = T.alloc_shared((-1,), 'float32')"),
    "shape of no tile": ("F023", "S = T.alloc_shared((), 'float32')"),
    "names by unicode tricks": ("F010", "x = T.\ufb01ll\n            x(S, 0)"),
}

HELPERS = """
def grow(x):
    for i in range(5000):
        x = x * x + 1
    return x

@T.macro
def again(A):
    again(A)

def fill(A):
    for i in range(10 ** 9):
        T.copy(A[0], A[1])
"""


@pytest.mark.parametrize(("code", "statement"), IN_A_KERNEL.values(), ids=IN_A_KERNEL.keys())
def test_kernel(code: str, statement: str) -> None:
    refused(FACTORY.format(module=HELPERS, factory="pass", body=statement), code)


def nested(levels: int) -> str:
    """A file of branches inside one another."""
    branches = "".join("\n" + " " * (12 + level) + f"if A[{level}] > {level}:" for level in range(levels))
    return FACTORY.format(module="", factory="pass", body=branches.strip() + "\n" + " " * (12 + levels) + "A[0] = 1")


def test_branches_nested_too_deeply() -> None:
    refused(nested(90), "F002")


def test_branches_that_are_just_not_nested_too_deeply_are_emitted(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(nested(63), encoding="utf-8")
    (kernel,) = tile2cu.emit(tmp_path / "deep.py").values()
    assert kernel.source.count("if (") >= 63


WHOLE_FILES = {
    "nothing": ("F003", ""),
    "null byte": ("F001", "x = 1\0"),
    "lone surrogate": ("F001", "x = '\ud800'"),
    "parentheses": ("F002", "x = " + "(" * 5000 + "1" + ")" * 5000),
    "lists": ("F002", "x = " + "[" * 190 + "]" * 190),
    "open parentheses": ("F002", "x = " + "(" * 5000),
    "signs": ("F002", "x = " + "-" * 5000 + "1"),
    "sum of many terms": ("F002", "x = " + "1 + " * 20_000 + "1"),
    "attributes": ("F002", "x = a" + ".b" * 5000),
    "calls": ("F002", "x = a" + "()" * 5000),
    "lambdas": ("F002", "x = " + "lambda: " * 5000 + "1"),
    "powers": ("F002", "x = " + "2 ** " * 5000 + "2"),
    "conditions": ("F002", "x = " + "1 if 1 else " * 5000 + "1"),
    "branches": ("F002", "if 1: pass\n" + "elif 1: pass\n" * 5000),
    "indentation": ("F002", "".join(" " * depth + "if 1:\n" for depth in range(200)) + " " * 200 + "pass\n"),
    "f-strings": ("F001", "x = " + "f'{" * 200 + "1" + "}'" * 200),
    "large file": ("F002", "x = 1\n" * 200_000),
    "number of many digits": ("F001", "x = " + "9" * 100_000),
    "module that never ends": ("F003", "while True: pass"),
    "only comments": ("F003", "# nothing\n" * 100),
}


@pytest.mark.parametrize(("code", "text"), WHOLE_FILES.values(), ids=WHOLE_FILES.keys())
def test_file(code: str, text: str) -> None:
    refused(text, code)


def test_host_part_that_never_ends_does_not_matter() -> None:
    text = FACTORY.format(module="", factory="pass", body="pass")
    endless = '\nif __name__ == "__main__":\n    while True:\n        kernel(1024)\n'
    assert programs(Path("host.py"), text + endless, kernel=None, bindings={})


def test_host_part_that_never_ends_gives_no_sizes_and_no_hang() -> None:
    text = FACTORY.replace("block=128", "block").format(module="", factory="pass", body="pass")
    endless = (
        '\nif __name__ == "__main__":\n    n = [1]\n    for i in n: n.append(1)\n    while 1:\n        n = n + n\n'
    )
    refused(text + endless, "F006")


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_loops_over_elements_without_statements_are_nothing(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    body = "for j in T.Parallel(block):\n                unused = 3"
    path.write_text(FACTORY.format(module="", factory="pass", body=body), encoding="utf-8")
    (emitted,) = tile2cu.emit(path, target=target).values()
    assert emitted.source.count("tl::parallel(") == 1


@pytest.mark.parametrize("depth", [4, 24])
def test_deep_loops_are_analysed_in_bounded_time(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is pending after a loop is not computed twice for each loop around it, which would be 2^depth visits."""
    visits = []
    visit = _Walker.simple

    def counted(self: _Walker, *given: Any, **named: Any) -> Any:
        visits.append(1)
        return visit(self, *given, **named)

    monkeypatch.setattr(_Walker, "simple", counted)
    loops = "".join(f"{' ' * (12 + at)}for i{at} in T.serial(2):\n" for at in range(depth))
    inner = " " * (12 + depth)
    text = f"""
import tilelang.language as T

@T.prim_func
def deep(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float32")
{loops}{inner}T.copy(A, S)
{inner}for i, j in T.Parallel(64, 64):
{inner} B[i, j] = S[j, i]
"""
    (emitted,) = emit_text(Path("deep.py"), text=text, kernel=None, target=find("cuda:sm_80"), bindings={})
    assert emitted.source.count("tl::sync_threads();") == 2
    assert len(visits) == 2 * depth + 2
