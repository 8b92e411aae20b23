"""Several kernels under one entry: guards, fallbacks, and what is no dispatch."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tile2cu import Dispatch, Entry, Tile2CuError, dispatch
from tile2cu.core.dispatch import dispatch_of

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
HOPPER: Mapping[str, object] = {"block_N": 256, "block_K": 64, "threads": 256}


def table(*entries: Entry, file: str = "gemm_relu.py") -> str:
    return dispatch(Dispatch(name="gemm", file=file, entries=entries), EXAMPLES)["gemm_dispatch.cpp"]


def guards(text: str) -> list[str]:
    """The conditions of the table, line breaks aside."""
    flat = " ".join(text.split())
    return [
        part.partition("; }")[0]
        for part in flat.split("[](const Call& call) { return ")[1:]
        if "size(" not in part[:60]
    ]


def refused(*entries: Entry, file: str = "gemm_relu.py") -> Tile2CuError:
    with pytest.raises(Tile2CuError) as caught:
        table(*entries, file=file)
    return caught.value


def test_files_of_all_entries_come_with_their_own_names() -> None:
    files = dispatch(Dispatch(name="gemm", file="gemm_relu.py", entries=(Entry(name="any"),)), EXAMPLES)
    assert sorted(files) == ["gemm_any.cu", "gemm_any.h", "gemm_any.json", "gemm_dispatch.cpp", "gemm_dispatch.h"]
    assert 'extern "C" tl_status gemm_any(' in files["gemm_any.cu"]
    assert "--kernel gemm_relu --name gemm_any" in files["gemm_any.cu"]


def test_guards_are_the_users_condition_and_the_sizes_compiled_in() -> None:
    text = table(
        Entry(name="small", bindings={"N": 64}, when="M <= 64 or K % 8 == 0", measured="4 us, 9 us with any"),
        Entry(name="large", when="16 < M // 8 and -M < K - 1"),
        Entry(name="any"),
    )
    assert guards(text) == [
        "call.N == 64 && (call.M <= 64 || call.K % 8 == 0)",
        "16 < call.M / 8 && -call.M < call.K - 1",
    ]
    assert "// Measured: 4 us, 9 us with any" in text
    assert "gemm_small(call.A, call.B, call.C, call.M, call.K, workspace, workspace_bytes, stream)" in text
    assert "[](const Call&) { return true; }" in text


def test_element_types_become_arguments_where_they_differ() -> None:
    text = table(Entry(name="half"), Entry(name="bfloat", bindings={"dtype": "bfloat16"}))
    of = " && ".join(f"call.{name}_dtype == TL_BFLOAT16" for name in "ABC")
    assert guards(text)[1] == of
    assert "tl_dtype A_dtype" not in table(Entry(name="half"))


def test_sizes_that_no_kernel_leaves_open_are_arguments() -> None:
    entries = [Entry(name=f"dim{dim}", bindings={"dim": dim}) for dim in (64, 128)]
    text = table(*entries, file="attention.py")
    assert guards(text) == ["call.dim == 64", "call.dim == 128"]
    assert "int batch, int heads, int seq_len, int dim, void* workspace" in " ".join(text.split())


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([Entry(name="a", when="M < 64")], "its last entry `a` runs only when M < 64"),
        ([Entry(name="any"), Entry(name="b", bindings={"M": 64})], "its last entry `b` is compiled for M = 64"),
        ([Entry(name="a", target="cuda:sm_90a", bindings=HOPPER)], "`a` supports only K % 8 == 0"),
        ([Entry(name="a"), Entry(name="b", bindings={"dtype": "bfloat16"}, when="M < 9")], "for bfloat16: its last"),
        ([Entry(name="a"), Entry(name="b", target="cuda:sm_89")], "does not run on cuda:sm_80, which `a` is for"),
    ],
)
def test_a_fallback_must_exist(entries: list[Entry], says: str) -> None:
    error = refused(*entries)
    assert error.code == "T2C-E023" and says in error.message


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("M <", "is no Python expression"),
        ("L < 4", "uses `L`, which is no size"),
        ("M + 1", "is a number, not a comparison"),
        ("M < 1.5", "is more than comparisons"),
        ("f(M) < 1", "is more than comparisons"),
        ("M < True", "is more than comparisons"),
        ("M in (1, 2)", "is more than comparisons"),
    ],
)
def test_conditions_that_cannot_be_read(when: str, says: str) -> None:
    error = refused(Entry(name="a", when=when), Entry(name="any"))
    assert error.code == "T2C-E021" and says in error.message


def test_kernels_with_other_arguments_are_no_entries() -> None:
    assert refused(Entry(name="a"), Entry(name="b", file="vector_add.py")).code == "T2C-E022"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"entries": []}, "needs a `name`"),
        ({"name": "gemm", "entries": [], "file": "a.py"}, "need distinct names"),
        ({"name": "gemm", "entries": [{"name": "a"}, {"name": "a"}]}, "need distinct names"),
        ({"name": "2", "entries": [{"name": "a"}]}, "cannot be part of a C function's name"),
        ({"name": "gemm", "entries": [{"name": "a", "binding": {}}]}, "has no field `binding`"),
        ({"name": "gemm", "entries": [{"name": "a", "bindings": 3}]}, "`bindings` of an entry is a table"),
        ({"name": "gemm", "entries": {"name": "a"}}, "`entries` of a dispatch is a list"),
        ({"name": "gemm", "entries": [{"name": "a", "when": 3}]}, "`when` of an entry is text"),
    ],
)
def test_tables_that_are_none(data: Mapping[str, object], says: str) -> None:
    with pytest.raises(Tile2CuError) as caught:
        dispatch_of(data)
    assert caught.value.code == "T2C-E020" and says in caught.value.message


def test_a_table_is_a_dispatch() -> None:
    data = {
        "name": "gemm",
        "file": "a.py",
        "entries": [{"name": "x", "bindings": {"M": 1}, "when": "N > 1"}, {"name": "y"}],
    }
    wanted = dispatch_of(data)
    assert wanted.entries == (Entry(name="x", bindings={"M": 1}, when="N > 1"), Entry(name="y"))
    assert wanted.source(wanted.entries[0]) == ("a.py", None)
    with pytest.raises(Tile2CuError, match="names no Python file"):
        dispatch(Dispatch(name="gemm", entries=wanted.entries))
