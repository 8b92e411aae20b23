"""The user's names survive, and ours give way to them."""

import json
import re
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions
from tile2cu.styles.base.names import Names, ascii_name, can_be_c_function
from tile2cu.targets import find


def test_names_are_kept() -> None:
    names = Names(["A_shared"])
    assert names("A_shared") == "A_shared"


def test_a_keyword_is_numbered() -> None:
    names = Names(["float", "float_1"])
    assert names("float") == "float_2"
    assert names("float") == "float_2"


def test_a_fresh_name_meets_no_user_name() -> None:
    assert Names(["C_layout"]).fresh("C_layout") == "C_layout_1"


def test_what_the_file_uses_itself_is_not_given_away() -> None:
    assert Names(["load"])("load") == "load_1"
    assert Names(["threads"], kept=["threads"])("threads") == "threads"


def test_reserved_underscores_vanish() -> None:
    assert Names(["__x"])("__x") == "x"


@pytest.mark.parametrize("name", ["NULL", "EOF", "NAN", "INFINITY", "M_PI", "TL_DEVICE", "errno", "stdin"])
def test_a_macro_is_numbered(name: str) -> None:
    assert Names([name])(name) == f"{name}_1"


@pytest.mark.parametrize("name", ["_Complex", "_Bool", "__x"])
def test_names_of_the_compiler_lose_their_underscores(name: str) -> None:
    assert Names([name])(name) == name.lstrip("_")


def test_names_are_spelled_in_the_letters_of_c() -> None:
    assert [ascii_name(name) for name in ("größe", "α", "Ω_2", "Übung")] == ["grosse", "alpha", "Omega_2", "Ubung"]
    names = Names(["größe", "grosse"])
    assert [names("grosse"), names("größe")] == ["grosse", "grosse_1"]


@pytest.mark.parametrize("name", ["printf", "malloc", "memcpy", "abs", "exit", "size_t", "NULL", "restrict", "dim3"])
def test_what_c_has_is_no_function(name: str) -> None:
    assert not can_be_c_function(name)


@pytest.mark.parametrize("name", ["a b;c", "../../x", "x/y", "", "größe", "_Kernel", "__kernel", "1st", "x\n"])
def test_what_is_no_identifier_of_c_is_no_function(name: str) -> None:
    assert not can_be_c_function(name)


def test_keywords_and_namespaces_are_no_functions() -> None:
    assert [name for name in ("threads", "double", "tl", "main", "grid") if not can_be_c_function(name)] == [
        "double",
        "tl",
        "main",
    ]


def test_names_of_loops_end_with_their_loops() -> None:
    """A copy's loop has i, k, ... again behind the user's loop over them, but not inside one, nor a number's name."""
    text = """
import tilelang.language as T
def f(M=256, j=64):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32")):
        with T.Kernel(4, threads=128) as bx:
            F = T.alloc_fragment((64, 64), "float32")
            for i, k in T.Parallel(64, 64):
                F[i, k] = A[bx * 64 + i, k] + j
            T.copy(F[0:32, 0:64], B[bx * 64, 0])
            for i in T.serial(2):
                T.copy(F[i * 32:i * 32 + 32, 0:64], B[bx * 64 + i * 32, 0])
    return main
"""
    (emitted,) = emit_text(Path("f.py"), kernel=None, target=find("cuda:sm_80"), bindings={}, text=text)
    loops = re.findall(r"\[&\]\(auto (\w+), auto (\w+)\)", emitted.source)
    assert loops == [("i", "k"), ("i", "k"), ("k", "l")]


def test_a_size_that_a_style_cannot_keep_is_called_so() -> None:
    """Its role is what a reader sees, not a number."""
    names = Names(["group", "copy"], reserved=["group", "copy"], wishes={"group": "group_size"})
    assert names("group") == "group_size" and names("copy") == "copy_1"


def test_names_that_are_given_are_noted() -> None:
    names = Names(["A", "B", "float"])
    names("A")
    with names.noted() as outside:
        names("B")
        with names.noted() as inside:
            names("float")
    assert inside == {"float_1"} and outside == {"B", "float_1"}


def test_comments_note_no_names() -> None:
    """They have the same ones, also those that only comments have asked for yet."""
    names = Names(["float", "int"])
    with names.noted() as noted:
        spoken = names.in_comments("float")
    assert not noted and names("float") == spoken == "float_1"
    assert names.in_comments("int") == names("int") == "int_1"


_COUNTED = """
import tilelang.language as T
def f(M=256, scale=3, shift=5, unused=7):
    twice = scale * 2
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((M, 64), "float32"), n: T.int32):
        with T.Kernel(M // 64, threads=128) as bx:
            F = T.alloc_fragment((64, 64), "float32")
            T.copy(A[bx * 64, 0], F)
            for i, j in T.Parallel(64, 64):
                if shift > 3:
                    F[i, j] = F[i, j] * twice + n
            T.copy(F, B[bx * 64, 0])
    return main
"""


@pytest.mark.parametrize(("style", "target"), [("tl", "cuda:sm_80"), ("cute", "cuda:sm_80"), ("ck", "hip:gfx942")])
def test_what_the_text_names_is_declared_and_nothing_else(style: str, target: str) -> None:
    """Python computes `twice` from `scale`; the branch that `shift` decides has no condition any more."""
    options = EmitOptions(style=style)
    (emitted,) = emit_text(Path("f.py"), kernel=None, target=find(target), bindings={}, text=_COUNTED, options=options)
    sizes = emitted.source.partition("---- sizes")[2].partition("// ----")[0]
    declared = re.findall(r"\b(\w+) = \d", sizes)
    assert set(declared) - {"threads"} == {"M", "twice"}, sizes


EXCHANGES = """
import tilelang
import tilelang.language as T


@tilelang.jit
def exchanges():
    @T.prim_func
    def main(X: T.Tensor((1, 4096), "float32"), Z: T.Tensor((2, 128), "float32")):
        with T.Kernel(1, threads=128) as bx:
            L = T.alloc_fragment((1, 4096), "float32")
            m = T.alloc_fragment((1,), "float32")
            m_workspace = T.alloc_shared((128,), "float32")
            block_votes = T.alloc_shared((64,), "float32")
            T.copy(X, L)
            T.reduce_max(L, m, dim=1)
            for i in T.Parallel(128):
                m_workspace[i] = X[0, i]
            for i in T.Parallel(64):
                block_votes[i] = X[0, i + 128]
            if T.syncthreads_or(block_votes[5] > 3):
                for i in T.Parallel(128):
                    Z[0, i] = m_workspace[127 - i] + block_votes[i // 2]
            T.copy(m, Z[1, 0:1])
    return main
"""


def test_what_waves_exchange_values_through_has_no_name_of_the_users(tmp_path: Path) -> None:
    path = tmp_path / "exchanges.py"
    path.write_text(EXCHANGES, encoding="utf-8")
    (emitted,) = emit_text(path, kernel=None, target=find("hip:gfx942"), bindings={})
    text = emitted.files["exchanges.hip"]
    members = re.findall(r"^  (?:tl::SharedTile1D|tl::ReduceWorkspace|int) ?.* (\w+)(?:\[2\])?;$", text, re.MULTILINE)
    assert members == ["m_workspace", "block_votes", "m_workspace_1", "block_votes_1"]
    assert "tl::reduce_max<1>(L, m, m_workspace_1);" in text
    assert "tl::any_of_block(block_votes(5) > 3.0f, block_votes_1)" in text
    shared = json.loads(emitted.files["exchanges.json"])["resources"]["shared"]
    assert shared == {"m_workspace": 512, "block_votes": 256, "m_workspace_1": 8, "block_votes_1": 8}
