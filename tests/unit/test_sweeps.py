"""The samples of tests marked `sweep`: each value is in one, parameters vary together, --nightly takes all cases."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

SWEEPS = """
import pytest

@pytest.mark.sweep
@pytest.mark.parametrize("chip", [80, 90])
@pytest.mark.parametrize("dtype", ["half", "float", "int"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_values(size, dtype, chip):
    pass

@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("chip", [80, 90])
@pytest.mark.parametrize("dtype", ["half", "float", "int"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_pairs(size, dtype, chip):
    pass

@pytest.mark.sweep("chip")
@pytest.mark.parametrize(("chip", "size"), [(80, 1), (80, 2), (90, 3), (90, 4)])
def test_one_parameter(chip, size):
    pass

@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("size", range(7))
def test_every(size):
    pass

@pytest.mark.parametrize("size", range(7))
def test_no_sweep(size):
    pass
"""


COLLECTED = """
import sys
import pytest

for title, options in (("of every change", []), ("--nightly", ["--nightly"])):
    print(title)
    assert pytest.main([*sys.argv[1:], *options]) == 0
"""


@pytest.fixture(scope="module")
def chosen(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[list[str]]]]:
    """The cases of SWEEPS' tests, as lists of values, of every change and with --nightly."""
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "test_sweeps.py").write_text(SWEEPS, encoding="utf-8")
    found: dict[str, dict[str, list[list[str]]]] = {}
    cases: dict[str, list[list[str]]] = {}
    arguments = ["-p", "tests.conftest", "--collect-only", "-q", "--rootdir", str(folder), "-c", "/dev/null"]
    lines = subprocess.run(
        [sys.executable, "-c", COLLECTED, *arguments, "test_sweeps.py"],
        cwd=folder, env={"PYTHONPATH": f"{root}:{root / 'runtime'}", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for line in lines:
        if line in ("of every change", "--nightly"):
            cases = found[line] = {}
        elif "::" in line:
            name, _, values = line.partition("::")[2].rstrip("]").partition("[")
            cases.setdefault(name, []).append(values.split("-"))
    return found


def test_each_value_is_in_a_case(chosen: dict[str, dict[str, list[list[str]]]]) -> None:
    cases = chosen["of every change"]["test_values"]
    assert [set(values) for values in zip(*cases, strict=True)] == [set("1234"), {"half", "float", "int"}, {"80", "90"}]
    assert len(cases) == 4


def test_each_pair_is_in_a_case(chosen: dict[str, dict[str, list[list[str]]]]) -> None:
    cases = chosen["of every change"]["test_pairs"]
    for one, other in itertools.combinations(range(3), 2):
        everything = {(case[one], case[other]) for case in chosen["--nightly"]["test_pairs"]}
        assert {(case[one], case[other]) for case in cases} == everything
    assert len(cases) < 24


def test_only_named_parameters_count(chosen: dict[str, dict[str, list[list[str]]]]) -> None:
    assert [chip for chip, _ in chosen["of every change"]["test_one_parameter"]] == ["80", "90"]


def test_every_third_case(chosen: dict[str, dict[str, list[list[str]]]]) -> None:
    assert chosen["of every change"]["test_every"] == [["0"], ["3"], ["6"]]


def test_other_tests_and_nights_have_all_cases(chosen: dict[str, dict[str, list[list[str]]]]) -> None:
    assert len(chosen["of every change"]["test_no_sweep"]) == 7
    assert {name: len(cases) for name, cases in chosen["--nightly"].items()} == {
        "test_values": 24, "test_pairs": 24, "test_one_parameter": 4, "test_every": 7, "test_no_sweep": 7,
    }  # fmt: skip


def test_the_nightly_run_has_all_sweeps(root: Path) -> None:
    assert "pytest -m sweep -n 2 --quiet --nightly" in (root / ".ci/nightly").read_text(encoding="utf-8")
