"""What a source's head states of the next values of tile parameters: each is emitted, and takes and is what it states.

The head asks the rules when it is written; the test traces, decides and emits the example with each value anew.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.golden.cases import GOLDEN, ROOT, TOOL, Golden, about_values
from tile2cu.analysis.uses import statements
from tile2cu.api import emit_text, resolved_kernels
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import EmitOptions
from tile2cu.core.program import Loop
from tile2cu.core.record import Record
from tile2cu.emitter import Resolved, emit_kernel, seen_by, with_namespaces
from tile2cu.emitter.settings import Design, differences
from tile2cu.targets import find

ROW = re.compile(r"^  (?:(\w+) +([\d,]+)|) +([\d,]+) {2,}(\S.*)$")


def _files() -> Iterator[tuple[Golden, Path]]:
    """The emitted sources, with the examples that they are of."""
    for golden in GOLDEN:
        for path in sorted((ROOT / "emitted" / golden.folder).glob("*.*")):
            text = path.read_text(encoding="utf-8") if path.suffix in (".cu", ".hip") else ""
            if f" from {golden.example} (sha256" in text:
                yield golden, path


CASES = {str(path.relative_to(ROOT / "emitted")): (golden, path) for golden, path in _files()}


class Stated(Record, frozen=True):
    """A line of the head: a parameter, its value and another, and what that gives."""

    name: str
    value: int
    other: int
    gives: str


def stated(text: str) -> list[Stated]:
    """What a source's head states of other values."""
    found: list[Stated] = []
    for line in about_values(text):
        if row := ROW.match(line):
            name, value, other, gives = row.groups()
            if name is None:
                name, value = found[-1].name, str(found[-1].value)
            found.append(Stated(name, number(value), number(other), gives))
        elif found:
            found[-1] = replace(found[-1], gives=f"{found[-1].gives} {line.strip()}")
    return found


def number(text: str) -> int:
    return int(text.replace(",", ""))


def launches_of(golden: Golden, path: Path, **values: object) -> tuple[Resolved, ...]:
    """A kernel of an example, decided with other values than those of emitted/."""
    (found,) = resolved_kernels(
        ROOT / "examples" / golden.example,
        kernel=path.stem,
        target=seen_by(golden.style, find(golden.target)),
        bindings={**golden.bindings, **values},
    )
    return tuple(replace(each, decide=None) for each in with_namespaces(found))


def shared_bytes(manifest: str) -> int:
    """The most shared memory that a launch of an emitted kernel takes, by its manifest."""
    read = json.loads(manifest)
    return max(int(each["shared_bytes"]) for each in read.get("launches") or [read["launch"]])


def taken(text: str) -> tuple[int, int]:
    """The bytes of shared memory and the registers in a sentence of the head."""
    shared = re.search(r"([\d,]+) bytes of (?:shared memory|LDS)", text)
    registers = re.search(r"(\d+)(?: of \d+)? registers for tiles", text)
    return number(shared[1]) if shared else 0, number(registers[1]) if registers else 0


def code_of(source: str) -> list[str]:
    """The words of a source without comments, and without what holds for a default that Python has chosen."""
    return re.sub(r'static_assert\([^;]*"this decided a branch[^;]*;', "", re.sub(r"//.*", "", source)).split()


def tile_registers(source: str, style: str, design: Design) -> int:
    """The most registers for tiles of a kernel; those that a source of the style ck states, as it has its own count."""
    if style != "ck":
        return design.registers
    return max(map(int, re.findall(r"---- registers: (\d+) per thread for tiles", source)), default=0)


def operand_registers(source: str, style: str, design: Design) -> int:
    """The most registers for operands that a GEMM has read: as for tiles."""
    if style == "tl":
        return design.operands
    about = " ".join(re.sub(r"^ *//", "", source, flags=re.M).split())
    return max(map(int, re.findall(r"one statement takes up to (\d+) for operands of a GEMM", about)), default=0)


def registers_of_launch_bounds(source: str) -> int:
    """The most registers of a lane: of 512 of a SIMD, for the waves that __launch_bounds__ of a kernel names."""
    threads = re.search(r"constexpr int threads = (\d+);", source)
    waves = re.search(r"constexpr int waves_per_simd_by_registers = (\d+);", source)
    assert threads is not None
    assert ("waves_per_simd_by_registers)" in source) == (waves is not None)
    return 512 // max(-(-int(threads[1]) // (64 * 4)), int(waves[1]) if waves else 1)


def registers_of_sm(source: str) -> int:
    """The most registers per thread: of an SM's 65,536, for the blocks of __launch_bounds__, or setmaxnreg's."""
    if shares := re.search(r"\bconsumer_registers = (\d+);", source):
        return int(shares[1])
    threads = re.search(r"constexpr int (?:block_)?threads = (\d+)", source)
    bounds = re.search(r"__launch_bounds__\(([^)]*)\)", source)
    assert threads is not None and bounds is not None
    blocks = re.search(r"constexpr int least_blocks = (\d+);", source)
    warps = int(threads[1]) // 32 + ("producer_threads" in bounds[1])
    of_quarter = -(-warps // 4) * (int(blocks[1]) if blocks and "least_blocks" in bounds[1] else 1)
    return min(255, 65536 // (128 * of_quarter) // 8 * 8)


@pytest.mark.sweep(every=22)
@pytest.mark.parametrize("name", CASES)
def test_other_values_give_what_the_head_states(name: str) -> None:
    golden, path = CASES[name]
    text = path.read_text(encoding="utf-8")
    own = launches_of(golden, path)
    design = Design.of(own)
    rows = stated(text)
    if rows:
        manifest = path.with_suffix(".json").read_text(encoding="utf-8")
        about = " ".join(about_values(text)).partition(" and so do comments. ")[2]
        registers = tile_registers(text, golden.style, design)
        assert taken(about.partition(". These values")[0]) == (shared_bytes(manifest), registers)
    for row in rows:
        constant = re.search(rf"\b{row.name} = (\d+)\b", text.partition("#include")[2])
        assert constant is None or int(constant[1]) == row.value
        code = re.match(r"(T2C-\w+): (.*)", row.gives)
        try:
            launches = launches_of(golden, path, **{row.name: row.other})
            emitted = emit_kernel(launches, tool=TOOL, options=EmitOptions(style=golden.style))
        except Tile2CuError as error:
            assert code, (row, error.code)
            assert code[1] == error.code
            tiles = [note.message for note in error.notes if error.code == "T2C-L020"]
            figures = [re.findall(r"(?<!\w)\d[\d,]*\d", each) for each in (code[2], " ".join((error.message, *tiles)))]
            assert figures[0] == figures[1], row
            continue
        assert not code, row
        alone = re.match(r"(\w+): ", row.gives)
        names = re.findall(r"^// ==== (\w+) =", text, re.M)
        about = launches[names.index(alone[1]) :][:1] if alone else launches
        other = Design.of(about)
        shared = other.shared if alone else shared_bytes(emitted.manifest)
        registers = other.registers if alone else tile_registers(emitted.source, golden.style, other)
        assert taken(row.gives) == (shared, registers), row
        operands = other.operands if alone else operand_registers(emitted.source, golden.style, other)
        assert ("over the limit" in row.gives) == (registers + operands > other.limit), row
        assert (f" and {operands} for operands" in row.gives) == bool(operands), row
        if len(launches) == 1 and golden.style == "tl":
            hip = golden.target.startswith("hip:")
            assert other.limit == (registers_of_launch_bounds if hip else registers_of_sm)(emitted.source), row
        assert not other.registers or re.search(rf"\bof {other.limit} reg|\blimit of {other.limit} per", row.gives), row
        loops = [loop for each in launches for loop in statements(each.launch.body, Loop)]
        asked = row.other if any(loop.stages_of == row.name for loop in loops) else 0
        whole = Design.of(launches)
        is_same = bool(asked) and code_of(emitted.source) == code_of(text)
        assert ("; the same kernel" in row.gives) == is_same, row
        words = r"other |.* stages? used|no stages|[\d, and]+ threads$|no producer"
        changes = "; ".join(part for part in row.gives.split("; ") if re.match(words, part))
        of_threads = any(each.launch.threads_of == row.name for each in own)
        assert changes == differences(design, whole, asked=asked, of_threads=of_threads), row
        for each in launches:
            assert each.launch.threads_of != row.name or each.launch.threads == row.other


def test_heads_state_values_where_a_kernel_has_parameters() -> None:
    without = {path.stem for _, path in CASES.values() if not stated(path.read_text(encoding="utf-8"))}
    assert without <= {"rmsnorm", "rmsnorm_silu", "dequant_gemv"}
    assert {path for path in (ROOT / "emitted").rglob("*") if path.suffix in (".cu", ".hip")} == {
        path for _, path in CASES.values()
    }


def test_values_that_give_kernels_of_different_groups_are_errors() -> None:
    """The second kernel has another number of threads then than a group of the first."""
    path = ROOT / "tests/errors/e032_groups_in_one_kernel.py"
    (emitted,) = emit_text(path, kernel=None, target=find("cuda:sm_90a"), bindings={"threads": 128})
    assert [(each.other, each.gives.partition(":")[0]) for each in stated(emitted.source)] == [
        (64, "T2C-E032"),
        (256, "T2C-E032"),
    ]


def test_what_changes_is_named() -> None:
    own = Design(traits=(("a", 1), ("b", 2)), stages=(2,), threads=(128,), shared=0, registers=0, limit=255)
    assert differences(own, own) == ""
    assert differences(own, replace(own, traits=(("a", 1), ("b", 3)))) == "other b"
    assert differences(own, replace(own, stages=(1,))) == "1 stage used"
    assert differences(own, replace(own, stages=(3,)), asked=3) == ""
    assert differences(own, own, asked=3) == "2 stages used"
    assert differences(own, replace(own, stages=()), asked=1) == "no stages"


def test_stages_on_amd_count_the_one_in_registers() -> None:
    text = (ROOT / "emitted/hip/gfx942/gemm_relu.hip").read_text(encoding="utf-8")
    gives = {each.other: each.gives for each in stated(text) if each.name == "num_stages"}
    assert gives[4].endswith("; 3 stages used; the same kernel") and "used" not in gives[2]
    assert "// 3 stages, the last in registers: one tile is used" in text and "shared_stages = 2;" in text
