"""What the rules decided of settings is kept for other processes, and changes no choice."""

import sys
from pathlib import Path

import pytest

from tests.unit.chooser.kernels import EXAMPLES, gemm
from tile2cu import choosing
from tile2cu.choosing import Tunable
from tile2cu.core.choice import Choice
from tile2cu.core.errors import Tile2CuError
from tile2cu.targets import SM90A
from tile2cu.tuning.decided import Decided

SIZES = {"M": 64, "N": 4096, "K": 4096}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILE2CU_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "decided.sqlite3"


def fresh(text: str = (EXAMPLES / "gemm_relu.py").read_text("utf-8"), **bindings: object) -> Tunable:
    """As a new process has it."""
    path = EXAMPLES / "gemm_relu.py"
    return Tunable(path=path, text=text, kernel=None, target=SM90A, bindings=tuple(bindings.items()))


def chosen_without_rules(monkeypatch: pytest.MonkeyPatch, kernel: Tunable, sizes: dict[str, int]) -> Choice:
    """The choice of a process in which no rule may be asked."""

    def asked(*_: object) -> object:
        raise AssertionError("a rule is asked")

    with monkeypatch.context() as patched:
        patched.setattr(choosing, "resolve", asked)
        return kernel.choice(sizes)


@pytest.mark.parametrize("bound", [True, False], ids=["bound sizes", "open sizes"])
def test_another_process_asks_no_rule_and_chooses_the_same(bound: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    bindings, sizes = (SIZES, {}) if bound else ({}, SIZES)
    first = fresh(**bindings).choice(sizes)
    kernel = fresh(**bindings)
    assert chosen_without_rules(monkeypatch, kernel, sizes) == first
    assert kernel.space.parameters == fresh(**bindings).space.parameters
    assert kernel.bound == (SIZES if bound else {})


def test_the_files_own_setting_is_rejected_with_its_place() -> None:
    """What a user sees of an error does not depend on the cache."""
    said = []
    for _ in range(2):
        kernel = fresh(gemm("block_M=1024, block_N=512"))
        with pytest.raises(Tile2CuError) as caught:
            kernel.decide(kernel.space.default)
        kernel.keep()
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert caught.value.span is not None


def test_a_rejected_setting_stays_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = {**fresh().space.default, "block_M": 256, "block_N": 256, "num_stages": 8}
    messages = []
    for _ in range(2):
        kernel = fresh()
        with pytest.raises(Tile2CuError) as caught:
            kernel.decide(setting)
        kernel.keep()
        messages.append((caught.value.code, caught.value.message))
    assert messages[0] == messages[1]


def test_another_file_is_another_kernel(cache: Path) -> None:
    fresh().choice(SIZES)
    other = fresh(fresh().text + "\n# other\n")
    assert not other._known
    assert fresh()._known
    assert not fresh(block_M=64)._known


@pytest.mark.parametrize("what", ["damaged", "a folder"])
def test_a_cache_that_cannot_be_used_is_left_alone(what: str, cache: Path) -> None:
    expected = fresh().choice(SIZES)
    cache.unlink()
    if what == "damaged":
        cache.write_bytes(b"no database" * 500)
    else:
        cache.mkdir()
    assert fresh().choice(SIZES) == expected
    assert fresh().choice(SIZES) == expected


def test_processes_add_to_one_file(cache: Path) -> None:
    first, second = Decided(cache), Decided(cache)
    first.add("a", {"x": 1})
    second.add("a", {"y": [2, "z"]})
    second.add("b", {"x": 3})
    assert first.of("a") == {"x": 1, "y": [2, "z"]}
    assert first.of("c") == {}
    assert Decided(None).of("a") == {}


def test_a_python_without_sqlite_chooses_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fresh().choice(SIZES)
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    kernel = fresh()
    assert not kernel._known
    assert kernel.choice(SIZES) == expected


def test_a_setting_may_leave_parameters_to_the_file() -> None:
    kernel = fresh()
    whole = kernel.decide({**kernel.space.default, "block_M": 64})
    assert kernel.decide({"block_M": 64}) == whole
