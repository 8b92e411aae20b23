"""What comments state of MFMAs, accesses of LDS, waits and registers, beside what clang emits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.amdgcn.build import run
from tests.amdgcn.code import assert_no_spills
from tests.amdgcn.test_stated_registers import EMITTED, ROOT
from tile2cu_runtime.amdgcn import CodeObject
from tile2cu_runtime.hip import CODE_OBJECT, code_object_commands


def text_id(path: Path) -> str:
    return str(path.relative_to(ROOT / "emitted"))


# For each change a product alone: compiling one takes clang two seconds.
PARAMS = [
    pytest.param(path, id=text_id(path), marks=[pytest.mark.nightly] * (path.stem != "gemm_relu")) for path in EMITTED
]


@pytest.fixture(scope="module", params=PARAMS)
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, CodeObject]:
    """(the text, its comments in one line each; its code object)."""
    path: Path = request.param
    folder = tmp_path_factory.mktemp("stated")
    (command,) = code_object_commands(str(path), architecture="gfx942")
    run([*command[:-1], str(folder / CODE_OBJECT), "-Wall", "-Wextra", "-Werror"])
    assert_no_spills(folder / CODE_OBJECT, products=True)
    return re.sub(r"\n *// ", " ", path.read_text(encoding="utf-8")), CodeObject.load(folder / CODE_OBJECT)


@pytest.fixture
def compiled(code: tuple[str, CodeObject]) -> tuple[str, list[list[str]]]:
    """(the text; the instructions of each of its kernels)."""
    return code[0], [code[1].instructions(name) for name in code[1].kernel_names]


def counts(instructions: list[str]) -> Counter[str]:
    return Counter(each.split()[0] for each in instructions)


def test_mfmas_and_their_reads(compiled: tuple[str, list[list[str]]]) -> None:
    """The loop's body is in the code once; every read of an operand is as wide as stated."""
    text, kernels = compiled
    mfmas = Counter[str]()
    for name, count in re.findall(r"(v_mfma\w+) x (\d+) per wave", text):
        mfmas[name] += int(count)
    assert mfmas and text.count(" by ds_read_b128") == sum(1 for _ in re.finditer(r"v_mfma\w+ x", text))
    for instructions in kernels:
        found = counts(instructions)
        assert {name: number for name, number in found.items() if name.startswith("v_mfma")} == mfmas
        assert {name for name in found if name.startswith("ds_read")} == {"ds_read_b128"}
        assert {name for name in found if name.startswith("ds_write")} == {"ds_write_b128"}
        assert "v_perm_b32" in found or "v_perm_b32 packs" not in text


def test_loads_in_flight(compiled: tuple[str, list[list[str]]]) -> None:
    """An iteration issues as many buffer loads, so wide, as are stated; before the loop others are issued."""
    text, kernels = compiled
    (issued,) = re.findall(r"issues ((?:\d+ x \d+ bytes(?: \+ )?)+) per lane, (\d+) vector-memory loads", text)
    loads = Counter[str]()
    for count, width in re.findall(r"(\d+) x (\d+) bytes", issued[0]):
        loads[f"buffer_load_dwordx{int(width) // 4}"] += int(count)
    assert sum(loads.values()) == int(issued[1])
    for instructions in kernels[:1]:  # the instance whose rows are aligned, where there are two
        found = {name: number for name, number in counts(instructions).items() if name.startswith("buffer_load")}
        assert set(found) == set(loads)
        assert all(found[name] % loads[name] == 0 for name in loads)


def test_barriers_wait_for_lds_and_not_for_loads(compiled: tuple[str, list[list[str]]]) -> None:
    text, kernels = compiled
    assert "a barrier waits for lgkmcnt(0), the LDS, and not for loads to registers (vmcnt)" in text
    for instructions in kernels:
        barriers = [at for at, each in enumerate(instructions) if each.startswith("s_barrier")]
        assert barriers
        for at in barriers:
            before = list(block_before(instructions, at))
            waits = [each for each in before if each.startswith("s_waitcnt")]
            of_lds = next((n for n, each in enumerate(before) if "lgkmcnt(0)" in each), len(before))
            assert not [each for each in before[:of_lds] if each.startswith("ds_")], "the LDS is waited for last"
            loads = next((n for n, each in enumerate(before) if each.startswith("buffer_load")), 0)
            assert not [each for each in before[:loads] if "vmcnt" in each], waits


def block_before(instructions: list[str], at: int) -> Iterator[str]:
    """The instructions before one, the last first, from the branch or barrier before it on."""
    for each in reversed(instructions[:at]):
        if each.startswith(("s_branch", "s_cbranch", "s_barrier", "s_endpgm")):
            return
        yield each


def test_the_waves_that_clang_leaves_registers_for_are_those_that_are_stated(code: tuple[str, CodeObject]) -> None:
    """No register is spilled, and those that clang takes leave as many waves as the comment at the bounds states."""
    text, compiled = code
    stated = re.search(r"per CU: (\d+)(?: to (\d+))? by registers", text)
    threads = re.search(r"constexpr int threads = (\d+);", text)
    assert stated is not None and threads is not None
    for name in compiled.kernel_names:
        kernel = compiled.kernel(name)
        waves = min(8, 512 // (-(-kernel.registers // 8) * 8))
        workgroups = waves * 4 // (int(threads[1]) // 64)
        assert int(stated[1]) <= workgroups <= int(stated[2] or stated[1])
        assert not kernel.spills and kernel.private_bytes == 0
