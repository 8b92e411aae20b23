"""The registers that sources of the style ck state, counted again from the tiles that their text declares."""

import re
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest

from tests.golden.test_claims import check_occupancy

ROOT = Path(__file__).resolve().parents[2]
CK = sorted((ROOT / "emitted/ck").rglob("*.hip"))
SIZES = {
    **dict.fromkeys(("float", "int", "uint32_t"), 4),
    **dict.fromkeys(("half_t", "bf16_t"), 2),
    **dict.fromkeys(("int8_t", "uint8_t", "fp8_t", "bf8_t"), 1),
}
ENCODING = re.compile(
    r"using (\w+) =\s+tile_distribution_encoding<sequence<[^>]*>, tuple<(.*?)>, tuple<[^;]*>, tuple<[^;]*>,"
    r" sequence<([^>]*)>, sequence<([^>]*)>>;",
    re.S,
)
_WITH = r"make_static_tile_distribution\(([\w:<>]+)\{"
TILE = re.compile(rf"auto (\w+?)(?:_\d+)? = make_static_distributed_tensor<(\w+)>\({_WITH}")
LOADED = re.compile(rf"auto (\w+_tile)(?:_\d+)? = (?:cast_tile<(\w+)>\()?load_tile\(make_tile_window\((\w+),.*{_WITH}")
VIEW = re.compile(r"const auto (\w+) = [^;=]*?make_naive_tensor_view<[^;]*?kargs\.(\w+)\b")


def launches(text: str) -> Iterator[tuple[str, str]]:
    """(what is above the functor, the functor) of each kernel."""
    above = 0
    for found in re.finditer(r"^struct Kernel \{$.*?^\};$", text, re.M | re.S):
        yield text[above : found.start()], found[0]
        above = found.end()


def registers_of(head: str) -> dict[str, int]:
    """The elements that a thread holds of each distribution: the digits of registers, multiplied."""
    found = {"tl::OneValue<threads>": 1}
    for name, digits, majors, minors in ENCODING.findall(re.sub(r"\n\s+", " ", head)):
        lengths = [[*map(int, each.split(","))] for each in re.findall(r"sequence<([^>]*)>", digits)]
        places = zip(map(int, majors.split(",")), map(int, minors.split(",")), strict=True)
        found[name] = prod(lengths[dim - 1][at] for dim, at in places)
    return found


BESIDES = (("_by_columns", "a tile's transpose"), ("_part", "a reduction's parts"))


def counted(head: str, functor: str, constants: dict[str, str]) -> tuple[int, dict[str, int]]:
    """(registers of fragments and of the next tiles, the most that a statement has besides them, by its use)."""
    held = registers_of(head)
    code = re.sub(r"\( ", "(", " ".join(re.sub(r"//.*", "", functor).split()))
    of_kargs = dict((name, kind) for kind, name in re.findall(r"(?:const )?(\w+)\* (\w+);", head))
    types = {view: of_kargs[name] for view, name in VIEW.findall(code)}
    size: dict[str, int] = {}
    besides: dict[str, int] = {}
    fragments = of_loop = 0
    for statement in (each.strip() for each in re.split(r"[;{}] ", code)):
        name, registers = declared(statement, size, held, constants, types)
        size[name] = registers
        of_loop = of_loop + registers if name.endswith("_tile") and registers else 0
        use = next((use for end, use in BESIDES if name.endswith(end)), "")
        use = "a reduction's parts" if name.startswith("parts_of_") else use
        use = "a loop's elements of tensors" if of_loop else use
        if use:
            besides[use] = max(besides.get(use, 0), -(-(of_loop or registers) // 4))
        else:
            fragments += registers
    return -(-fragments // 4), besides


def declared(
    statement: str,
    size: dict[str, int],
    held: dict[str, int],
    constants: dict[str, str],
    types: dict[str, str],
) -> tuple[str, int]:
    """(the name that a statement declares, its bytes in registers)."""
    if found := TILE.match(statement):
        return found[1], held[found[3]] * SIZES[found[2]]
    if found := LOADED.match(statement):
        return found[1], held[found[4]] * SIZES[found[2] or types[found[3]]]
    if found := re.fullmatch(r"auto (\w+_part) = (\w+)", statement):
        return found[1], size[found[2]]
    if found := re.fullmatch(r"(\w+) (\w+)((?:\[\w+\])+)", statement):
        lengths = (int(constants.get(each, each)) for each in re.findall(r"\w+", found[3]))
        return found[2], SIZES[found[1]] * prod(lengths)
    return "", 0


@pytest.mark.parametrize("path", CK, ids=lambda path: path.stem)
def test_registers_are_those_of_the_tiles(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    constants = dict(re.findall(r"\b(\w+) = (\d+)[,;]", text))
    for head, functor in launches(text):
        count, besides = counted(head, functor, constants)
        stated = re.search(r"---- registers: (\d+) per thread for tiles", head)
        assert (int(stated[1]) if stated else 0) == count
        comments = re.sub(r"\s*\n\s*// ", " ", functor)
        of_mmas = re.findall(r"operands from LDS take (\d+) VGPRs", comments)
        if of_mmas:
            besides["operands of a GEMM"] = max(map(int, of_mmas))
        about = re.search(r"(?:besides these, one statement|a loop) takes up to ((?:[^\n]|\n// (?!wave =))*)\n", head)
        uses = re.split(r", | and (?=\d)", about[1].replace("\n// ", " ")) if about else []
        assert {use.split(" for ")[1]: int(use.split(" for ")[0]) for use in uses} == besides


@pytest.mark.parametrize("path", CK, ids=lambda path: path.stem)
def test_workgroups_of_a_cu_are_those_that_registers_and_lds_have_room_for(path: Path) -> None:
    for head, functor in launches(path.read_text(encoding="utf-8")):
        constants = re.findall(r"constexpr int (threads|waves_per_simd_by_registers) = (\d+);", head)
        check_occupancy(head, functor, {name: int(number) for name, number in constants})


@pytest.mark.parametrize("path", CK, ids=lambda path: path.stem)
def test_parameters_of_lambdas_shadow_nothing(path: Path) -> None:
    """A tile's element has another name than the tile."""
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    for _, functor in launches(text):
        declared = set(re.findall(r"\b(?:auto&?|int|float|\w+_t) (\w+)(?: =|\[)", functor))
        lambdas = re.findall(r"\[&?\]\(([^)]*)\)", functor)
        assert declared.isdisjoint(re.findall(r"\bauto&? (\w+)", " ".join(lambdas)))
