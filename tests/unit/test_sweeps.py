"""The samples of tests marked `sweep`: each value is in one, parameters vary together, --nightly takes all cases."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NEEDS, SWEEPS

EXAMPLES = """
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

@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("chip", [80, 90])
def test_one(chip):
    pass

@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("chip", [80, 90])
def test_other(chip):
    pass

@pytest.mark.sweep(cases=3)
@pytest.mark.parametrize("size", range(7))
def test_three(size):
    pass

@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("chip", [80, 90])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_both(chip, size):
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
    """The cases of EXAMPLES' tests, as lists of values, of every change and with --nightly."""
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "test_sweeps.py").write_text(EXAMPLES, encoding="utf-8")
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


def test_so_many_cases_others_for_each_test(chosen: dict[str, dict[str, list[list[str]]]]) -> None:
    every_change = chosen["of every change"]
    assert {tuple(*every_change[name]) for name in ("test_one", "test_other")} == {("80",), ("90",)}
    assert len(every_change["test_three"]) == 3
    assert {chip for values in every_change["test_both"] for chip in values if len(chip) == 2} == {"80", "90"}


def test_other_tests_and_nights_have_all_cases(chosen: dict[str, dict[str, list[list[str]]]]) -> None:
    assert len(chosen["of every change"]["test_no_sweep"]) == 7
    assert {name: len(cases) for name, cases in chosen["--nightly"].items()} == {
        "test_values": 24, "test_pairs": 24, "test_one_parameter": 4, "test_every": 7, "test_one": 2,
        "test_other": 2, "test_three": 7, "test_both": 8, "test_no_sweep": 7,
    }  # fmt: skip


@pytest.mark.sweep("one", "other")
@pytest.mark.parametrize("one", range(3))
@pytest.mark.parametrize("other", range(3))
def test_this_sweep_is_sampled(one: int, other: int) -> None:
    """Of nine cases three have each number."""
    assert one + other < 5


def test_each_value_of_the_sweeps_of_this_run_is_in_a_case(request: pytest.FixtureRequest) -> None:
    """Of all tests that were collected with this one: of a run of all tests, each sweep that there is."""
    sweeps = request.config.stash[SWEEPS]
    left = {item.nodeid.split("[")[0] for item in request.session.items if item.get_closest_marker("sweep")}
    assert left == sweeps.keys()
    for name, (cases, chosen) in sweeps.items():
        mark = cases[0].get_closest_marker("sweep")
        if request.config.getoption("--nightly"):
            assert chosen == cases, name
        elif every := mark.kwargs.get("every"):
            assert chosen and len(cases) <= every * len(chosen), name
        elif count := mark.kwargs.get("cases"):
            assert len(chosen) == min(count, len(cases)), name
        else:
            size = 2 if mark.kwargs.get("pairs") else 1
            assert groups(cases, mark.args, size) == groups(chosen, mark.args, size) != set(), name


def groups(cases: list[pytest.Function], names: tuple[str, ...], size: int) -> set[frozenset[tuple[str, str]]]:
    """Each so many values of parameters that are in one case."""
    values = ({(name, repr(value)) for name, value in case.callspec.params.items()} for case in cases)
    named = ({pair for pair in each if not names or pair[0] in names} for each in values)
    return {frozenset(group) for each in named for group in itertools.combinations(each, size)}


def test_the_nightly_run_has_all_that_each_change_leaves_out(root: Path) -> None:
    """In one command, which fails where a test's need is missing; a GPU is not there."""
    text = (root / ".ci/nightly").read_text(encoding="utf-8")
    assert '\npython -m pytest -m "nightly or sweep" -n 2 --dist worksteal --quiet --nightly\n' in text
    required = re.search(r"^export TILE2CU_REQUIRE=(\S+)$", text, re.M)
    assert required is not None and {*required[1].split(",")} == NEEDS.keys() - {"gpu"}
