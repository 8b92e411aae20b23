"""Passes over TVM's nodes that a library applies to its prim_func, and its context managers that emit markers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Program
from tile2cu.frontend import programs

# A library that counts and names ranges of a kernel: markers, which a pass takes out before TileLang compiles it.
LIBRARY = """
import tilelang.language as T
import tvm.tirx as tx
from tvm.tirx.stmt_functor import ir_transform, post_order_visit

MARKER = "my_marker"
_COUNT = None

def count():
    global _COUNT
    if _COUNT is None:
        _COUNT = 0
    _COUNT = _COUNT + 1
    return _COUNT

def copied_by(A, B):
    with Range("helper") as first, Range("inner"):
        T.copy(A, B)
        return first

class Range:
    def __init__(self, name, payload=None):
        self.name = name
        self.payload = payload

    def __enter__(self):
        T.evaluate(T.call_extern("handle", MARKER, count(), 0 if self.payload is None else self.payload))
        return self

    def __exit__(self, kind, error, trace):
        T.evaluate(T.call_extern("handle", MARKER, count(), 1))
        return False

def is_marker(node):
    if not isinstance(node, tx.Call):
        return False
    args = list(node.args)
    return bool(args) and isinstance(args[0], tx.StringImm) and args[0].value == MARKER

def strip(main):
    def visit(node):
        if isinstance(node, tx.Evaluate) and is_marker(node.value):
            return tx.Evaluate(tx.IntImm("int32", 0))
        return node

    body = ir_transform(main.body, None, visit)
    return tx.PrimFunc(
        params=list(main.params), body=body, ret_type=main.ret_type, buffer_map=dict(main.buffer_map), attrs=main.attrs
    )

def find(main):
    post_order_visit(main.body, lambda node: None)
    return main

def with_all(main, visit):
    return tx.PrimFunc(main.params, ir_transform(main.body, None, visit), main.ret_type, main.buffer_map, main.attrs)
"""
KERNEL = """
import tilelang
import tilelang.language as T
import tvm.tirx as tx
from library import *

@tilelang.jit(out_idx=[-1])
def kernel(N=64):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=64), Range("whole"):
            with Range("copy", payload=T.get_thread_binding()) as copied:
                helper = copied_by(A, B)
            calls = count()
            assert copied.name == "copy" and helper.name == "helper" and calls == 8
            T.import_source("__device__ void kept(int n);")
            T.call_extern("handle", "kept", 3)
    return {returned}
"""


def traced(returned: str) -> Program:
    (program,) = programs(Path("kernel.py"), KERNEL.format(returned=returned), read={"library.py": LIBRARY}.get)
    return program


def test_a_pass_that_takes_markers_out(listing: Callable[[Program], list[str]]) -> None:
    found = listing(traced("strip(main)"))
    assert found == ["parallel i in N", "  B[i] = A[i]", "::kept(3)"]


def test_markers_that_nothing_takes_out_are_calls_of_what_no_source_declares() -> None:
    with pytest.raises(Tile2CuError) as caught:
        traced("main")
    assert (caught.value.code, caught.value.message) == ("T2C-F009", "no C++ of the file declares `my_marker`")


# What is known of it only in TVM, which is never run: an error, not another kernel.
REFUSED = {
    "find(main)": "post_order_visit is not supported yet",
    "with_all(main, lambda node: tx.Evaluate(0))": "<lambda>() changes more than calls of C++ functions",
    "with_all(main, lambda node: node if isinstance(node, tx.Evaluate) else node.body)": (
        "`body` of a node of TVM's is not supported yet"
    ),
    "with_all(main, lambda node: tx.Call('int32', 'op', []) if isinstance(node, tx.Evaluate) "
    "and is_marker(node.value) else node)": "<lambda>() makes a node of the kernel of a call of `my_marker`",
    "tx.PrimFunc(list(main.params)[1:], main.body, main.ret_type, main.buffer_map, main.attrs)": (
        "a PrimFunc with other parameters is not supported yet"
    ),
    "tx.PrimFunc(main.params, 3, main.ret_type, main.buffer_map, main.attrs)": (
        "a PrimFunc of the number 3 is not supported yet"
    ),
}


@pytest.mark.parametrize("returned", REFUSED)
def test_other_passes(returned: str) -> None:
    with pytest.raises(Tile2CuError) as caught:
        traced(returned)
    assert (caught.value.code, caught.value.message) == ("T2C-F011", REFUSED[returned]), caught.value.render()


def test_a_package_of_the_project_that_a_file_is_in(tmp_path: Path) -> None:
    """A test's `import library` is the project's package: in the folder of pyproject.toml, or in src there."""
    for place in ("", "src/"):
        root = tmp_path / f"project{len(place)}"
        text = KERNEL.format(returned="strip(main)").replace("from library import *", "from library.trace import *")
        files = {
            "pyproject.toml": "",
            f"{place}library/__init__.py": "",
            f"{place}library/trace.py": LIBRARY,
            "tests/a/test_it.py": text,
        }
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, encoding="utf-8")
        assert programs(root / "tests/a/test_it.py", text)
        (root / "pyproject.toml").unlink()
        with pytest.raises(Tile2CuError):
            programs(root / "tests/a/test_it.py", text)


def test_the_expression_of_a_text_that_is_known(
    body: Callable[..., Program], listing: Callable[..., list[str]]
) -> None:
    """`eval` of a constant text is what it says, where it is; its errors are at a place in the text."""
    made = body("x = A[0, 0]\nA[0, 1] = eval(text)", factory='text = "x * 2.0 + 1"')
    assert any("A[0, 1] = " in line for line in listing(made))
    written = body("x = A[0, 0]\nA[0, 1] = x * 2.0 + 1")
    assert listing(made) == listing(written)
    with pytest.raises(Tile2CuError) as caught:
        body("A[0, 1] = eval('1 + missing')")
    assert caught.value.span is not None and caught.value.span.text == "1 + missing"
    assert caught.value.span.file.endswith(": eval") and caught.value.code == "T2C-F009"
