"""The corpus's committed statuses may only improve; and what the walk itself does, on files of our own."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.drivers import STRANGERS, repositories
from tests.conformance.reasons import REASONS, with_reason
from tests.conformance.run_corpus import (
    STYLES,
    TESTS,
    Row,
    coverage_table,
    rank,
    read_table,
    read_tables,
    regressions,
    report,
    survey,
    table_of_repositories,
    write_table,
)
from tile2cu.targets import find

TARGETS = ("cuda:sm_80",)
PAGES = Path(__file__).resolve().parents[2] / "docs"
# What a page says of a style's table: how many kernels it emits of those that the style tl emits for the target.
STATED = [
    ("cute", "cuda:sm_80", "cute.md", r"it emits (\d+) of (\d+) for sm_80"),
    ("cute", "cuda:sm_90a", "cute.md", r"and (\d+) of (\d+) for sm_90a"),
    ("cute", "cuda:sm_80", "coverage.md", r"emits (\d+) of the (\d+) kernels that are emitted for cuda:sm_80"),
    ("cute", "cuda:sm_90a", "coverage.md", r"and (\d+) of the (\d+) for cuda:sm_90a"),
    (
        "ck",
        "hip:gfx942",
        "ck.md",
        r"(\d+) of the (\d+) kernels of TileLang's examples that the style `tl` emits for gfx942",
    ),
]
KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def {name}(M, N, block_M, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            tile = T.alloc_fragment((block_M, 64), dtype)
            T.copy(A[bx * block_M, 0], tile)
            {more}
            T.copy(tile, B[bx * block_M, 0])
    return main

if __name__ == "__main__":
    {name}(1024, 64, 32)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A corpus of three files: one that is emitted, one that is refused, one without kernels."""
    (tmp_path / "good.py").write_text(KERNEL.format(name="keep", more="pass"), encoding="utf-8")
    (tmp_path / "bad.py").write_text(KERNEL.format(name="shuffle", more="T.tma_gather4()"), encoding="utf-8")
    (tmp_path / "other.py").write_text("print('no kernel here')\n", encoding="utf-8")
    return tmp_path


def test_each_kernel_has_a_row(folder: Path) -> None:
    rows = survey(folder, find("cuda:sm_80"))
    assert [(row.name, row.status) for row in rows] == [
        ("bad.py::shuffle", "refused T2C-F011"),
        ("good.py::keep", "emitted"),
    ]
    assert "2 kernels in 2 files; 1 files emitted as a whole" in report(rows)


def test_arguments_of_the_driver_that_are_refused_make_way_for_defaults(folder: Path) -> None:
    """As of a test that is parametrised over types, the first of which is not supported."""
    text = KERNEL.format(name="typed", more="pass").replace("(1024, 64, 32)", '(1024, 64, 32, "float8_e8m0fnu")')
    (folder / "typed.py").write_text(text.replace("M, N, block_M,", "M, N, block_M=32,"), encoding="utf-8")
    assert [row.status for row in survey(folder, find("cuda:sm_80"), only="typed.py")] == ["emitted"]


def test_what_no_driver_of_the_file_says_may_be_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "open.py").write_text(
        KERNEL.format(name="opened", more="pass").partition("if __name__")[0], encoding="utf-8"
    )
    assert [row.status for row in survey(folder, find("cuda:sm_80"), only="open.py")] == ["refused T2C-F006"]
    (folder / "given.json").write_text(
        '{"open.py::opened": {"block_M": 32}, "en.py::opened": {"block_M": "x"}}', encoding="utf-8"
    )
    monkeypatch.setattr("tests.conformance.drivers.GIVEN", folder / "given.json")
    assert [row.status for row in survey(folder, find("cuda:sm_80"), only="open.py")] == ["emitted"]


def test_kernels_of_others_have_the_arguments_of_their_callers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out is not tried, and arguments hold for one path of one repository."""
    text = KERNEL.format(name="opened", more="pass").partition("if __name__")[0]
    for path in ("own/er/open.py", "own/er/exercises/open.py", "other/one/open.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    data = {
        "repositories": {"own/er": "0" * 40},
        "left out": {"own/er/exercises/": "exercises"},
        "of callers": {"own/er/open.py::opened": {"block_M": 32}},
        "chosen": {},
    }
    (tmp_path / "data.json").write_text(json.dumps(data), encoding="utf-8")
    monkeypatch.setattr("tests.conformance.drivers.STRANGERS", tmp_path / "data.json")
    rows = survey(folder, find("cuda:sm_80"), parts=("own/er", "other/one"))
    assert [(row.file, row.status) for row in rows] == [
        ("other/one/open.py", "refused T2C-F006"),
        ("own/er/open.py", "emitted"),
    ]


def test_the_table_of_repositories_counts_by_repository_and_target() -> None:
    statuses = {"a/b/x.py::f": "compiled", "a/b/x.py::g": "refused T2C-L020", "a/bc/x.py::f": "emitted"}
    table = table_of_repositories({"cuda:sm_90a": statuses}, {"a/b": "1" * 40, "a/bc": "2" * 40})
    assert table.splitlines()[2:] == [
        "| a/b | 111111111 | 2 | 1 | 1 | T2C-L020 (1) |",
        "| a/bc | 222222222 | 1 | 1 | 0 |  |",
        "| all |  | 3 | 2 | 1 | T2C-L020 (1) |",
    ]


def test_most_kernels_of_other_repositories_are_emitted() -> None:
    statuses = read_table("cuda:sm_90a", "strangers")
    assert len(statuses) >= 456
    assert sum(status.startswith("refused") for status in statuses.values()) <= 11
    assert "emitted" not in statuses.values(), "each that is emitted was compiled"
    on_amd = read_table("hip:gfx942", "strangers")
    assert on_amd.keys() == statuses.keys() and emitted(on_amd) >= 364
    assert not any(status.startswith(("failed", "miscompiled")) for status in (*statuses.values(), *on_amd.values()))
    assert all(any(name.startswith(f"{repository}/") for repository in repositories()) for name in statuses)


def test_arguments_of_others_are_those_of_kernels_that_were_tried() -> None:
    tried = {name for statuses in read_tables("strangers").values() for name in statuses}
    data = json.loads(STRANGERS.read_text(encoding="utf-8"))
    assert not {*data["of callers"], *data["chosen"]} - tried
    assert not data["of callers"].keys() & data["chosen"].keys()
    assert len(data["chosen"]) <= 121, "more arguments are those of callers"


def test_kernels_of_others_do_not_get_worse() -> None:
    folder = os.environ.get("TILE2CU_CORPUS_STRANGERS")
    if not folder:
        pytest.skip("TILE2CU_CORPUS_STRANGERS names no folder: checkouts OWNER/NAME of strangers.json's repositories")
    rows = survey(Path(folder), find("cuda:sm_90a"), parts=tuple(repositories()))
    assert not regressions(rows, read_table("cuda:sm_90a", "strangers"))


def test_emitted_text_compiles(folder: Path, gxx: str) -> None:
    rows = survey(folder, find("cuda:sm_80"), only="good", compiler="g++")
    assert [row.status for row in rows] == ["compiled"]


def test_kernels_that_have_run_do_not_run_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.conformance.run_corpus.ran", lambda row, *_: replace(row, status="correct"))
    done: list[Row] = []
    known = {"good.py::keep": "compiled"}
    survey(folder, find("cuda:sm_80"), run=True, known=known, done=lambda row: done.append(row) or row)
    assert [row.name for row in done] == ["bad.py::shuffle"]
    survey(folder, find("cuda:sm_80"), only="good", run=True, known={}, done=lambda row: done.append(row) or row)
    assert [(row.name, row.status) for row in done[1:]] == [("good.py::keep", "correct")]


def test_only_steps_back_are_regressions() -> None:
    rows = [Row("a.py", "f", "emitted"), Row("b.py", "g", "refused T2C-F011")]
    assert not regressions(rows, {"a.py::f": "compiled", "b.py::g": "refused T2C-F012"})
    assert regressions(rows, {"b.py::g": "emitted"}) == ["b.py::g: emitted, now refused T2C-F011"]
    assert regressions(rows, {"gone.py::h": "emitted"}) == ["gone.py::h: emitted, now failed"]


def test_the_table_holds_names_and_statuses_only(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.conformance.run_corpus.TABLES", {"examples": tmp_path / "status.json"})
    write_table("cuda:sm_80", survey(folder, find("cuda:sm_80")))
    assert read_table("cuda:sm_80") == {"bad.py::shuffle": "refused T2C-F011", "good.py::keep": "emitted"}


def test_most_of_tilelangs_own_tests_are_emitted() -> None:
    statuses = read_table("cuda:sm_90a", "tests").values()
    assert len(statuses) == 361
    assert sum(not status.startswith(("refused", "failed")) for status in statuses) >= 300
    assert sum(status == "correct" for status in statuses) >= 267


@pytest.mark.parametrize("table", ["examples", "tests"])
def test_each_emitted_kernel_that_is_not_equal_to_the_interpreter_has_a_reason(table: str) -> None:
    for target, statuses in read_tables(table).items():
        for name, status in statuses.items():
            rank, _, reason = status.partition(" ")
            assert rank in ("correct", "refused") or reason in REASONS, f"{target} {name}: {status}"


def test_a_run_has_the_reason_that_it_states() -> None:
    assert with_reason("compiled", "cannot interpret an address") == "compiled addresses"
    assert with_reason("ran", "C: 7 of 64 elements are off, one by 3 of 4") == "ran unknown"
    assert "unknown" not in REASONS
    assert with_reason("correct", "") == "correct"


def test_a_reason_stays_until_the_kernel_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.conformance.run_corpus.TABLES", {"examples": tmp_path / "status.json"})
    for status, kept in [
        ("compiled addresses", "compiled addresses"),
        ("emitted", "compiled addresses"),
        ("compiled", "compiled addresses"),
        ("correct", "correct"),
        ("emitted", "correct"),
        ("compiled unknown", "compiled unknown"),
        ("ran order", "ran order"),
        ("ran unknown", "ran order"),
        ("compiled race", "compiled race"),
    ]:
        write_table("cuda:sm_80", [Row("a.py", "f", status)])
        assert read_table("cuda:sm_80") == {"a.py::f": kept}
    assert "| not equal: its own source lacks a barrier | 1 |" in coverage_table(read_tables())


def test_tilelangs_own_tests_do_not_get_worse() -> None:
    folder = os.environ.get("TILE2CU_CORPUS_TESTS")
    if not folder:
        pytest.skip("TILE2CU_CORPUS_TESTS names no folder: a checkout of TileLang's `testing/python`")
    rows = survey(Path(folder), find("cuda:sm_90a"), parts=TESTS)
    assert not regressions(rows, read_table("cuda:sm_90a", "tests"))


@pytest.mark.parametrize("target", TARGETS)
def test_corpus_does_not_get_worse(target: str) -> None:
    corpus = os.environ.get("TILE2CU_CORPUS")
    if not corpus:
        pytest.skip("TILE2CU_CORPUS names no folder: a checkout of TileLang's `examples`")
    assert not regressions(survey(Path(corpus), find(target)), read_table(target))


@pytest.mark.parametrize(("style", "target", "page", "pattern"), STATED)
def test_a_page_states_how_many_kernels_a_style_emits(style: str, target: str, page: str, pattern: str) -> None:
    stated = re.search(pattern, re.sub(r"\s+", " ", (PAGES / page).read_text(encoding="utf-8")))
    assert stated is not None, page
    assert int(stated[1]) == emitted(read_table(target, style)) >= {"cute": 80, "ck": 50}[style]
    if of_tl := read_table(target):
        assert int(stated[2]) == emitted(of_tl)


def emitted(statuses: dict[str, str]) -> int:
    """How many kernels of a table are emitted at least."""
    return sum(rank(status) >= rank("emitted") for status in statuses.values())


@pytest.mark.parametrize("style", STYLES)
def test_no_style_loses_a_kernel_of_the_corpus(style: str) -> None:
    corpus = os.environ.get("TILE2CU_CORPUS")
    if not corpus:
        pytest.skip("TILE2CU_CORPUS names no folder: a checkout of TileLang's `examples`")
    for target, statuses in read_tables(style).items():
        assert not regressions(survey(Path(corpus), find(target), style=style), statuses)
