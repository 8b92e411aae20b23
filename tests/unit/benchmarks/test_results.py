"""benchmarks/RESULTS.md is what its data give."""

import csv
from pathlib import Path

import pytest
from benchmarks import results

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_current() -> None:
    text = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    assert text == results.page(), "run: python benchmarks/results.py"


def test_each_figure_has_its_date_commit_and_note() -> None:
    with (ROOT / "benchmarks/results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        assert row["date"] and len(row["commit"]) == 8 and row["ratio"], row
        assert (ROOT / "docs/lab" / row["note"].partition("#")[0]).is_file()


def test_ratios_of_shapes_are_of_the_best_tile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shapes").mkdir()
    data = "M,N,K,cublas,g_a,f_b\n1,8,8,10,20,5\n1,8,16,10,,40\n"
    (tmp_path / "shapes/h200_2026-01-02.csv").write_text(data, encoding="utf-8")
    monkeypatch.setattr(results, "HERE", tmp_path)
    assert [*results._shapes()][-1] == "| 1 | 0.71 | 0.25 | 2.00 |"
