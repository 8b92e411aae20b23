"""What holds of each source in CuTe's style below emitted/: messages, names that are read, and MMAs' own partitions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).resolve().parents[2] / "emitted" / "cute").rglob("*.cu"))
INDICES = re.compile(r"^( *)const int (\w+ = get<[^;]*);", re.MULTILINE)

pytestmark = pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")


def test_an_assertion_about_partitions_has_a_message(path: Path) -> None:
    registers = re.search(r"// ---- registers.*?// grid: ", path.read_text(encoding="utf-8"), re.DOTALL)
    for asserted in re.findall(r"static_assert\((.*?)\);", registers[0] if registers else "", re.DOTALL):
        assert asserted.endswith('"'), asserted


def test_an_index_that_is_declared_is_read(path: Path) -> None:
    """Else nvcc warns of an unused variable."""
    text = path.read_text(encoding="utf-8")
    for found in INDICES.finditer(text):
        block = re.split(rf"\n {{0,{max(len(found[1]) - 1, 0)}}}\}}", text[found.end() :])[0]
        for name in re.findall(r"(\w+) = get<", found[2]):
            assert re.search(rf"\b{name}\b", block), f"{name} of {found[0].strip()}"


def test_an_accumulator_is_partitioned_and_stored_by_the_mma_that_writes_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    partitions = dict(re.findall(r"Tensor (\w+) =\s+partition_fragment_C\((\w+)\{\}", text))
    writers: dict[str, str] = {}
    for slab, mma, given in re.findall(r"tl::wgmma(_slab)?\((\w+)\{\},([^;]*)\);", text):
        words = re.findall(r"\w+", re.sub(r",\s*GMMA::.*|,\s*[^,]*\?.*", "", given, flags=re.S))
        writers.setdefault(words[-2] if slab else words[-1], mma)  # a slab's number is behind the accumulator
    for tile, mma in writers.items():
        assert partitions[tile] == mma
        for stored in re.findall(rf"tl::tma_store\w*(?:<\w+>)?\((\w+)\{{\}}, {tile}\b", text):
            assert stored == mma


def test_descriptors_of_stages_that_the_producer_fills_are_advanced(path: Path) -> None:
    """They are not computed between the wait for a stage and its MMAs, unless threads write an operand there."""
    text = path.read_text(encoding="utf-8")
    loaded = set(re.findall(r"tl::tma_load(?:_slab)?\([^;]*?(\w+)\(_, _, [^;]*;", text))
    for given in re.findall(r"tl::wgmma\(([^;]*)\);", text):
        assert set(re.findall(r"tl::stage_of\((\w+), ", given)) <= loaded
        others = set(re.findall(r"(\w+)\(_, _, ", given))
        assert not others or not others <= loaded


def test_the_launcher_says_how_rows_without_alignment_are_accessed(path: Path) -> None:
    text = re.sub(r"\n *// ", " ", path.read_text(encoding="utf-8"))
    for others in re.findall(r"// Accesses of .* have up to \d+ bytes where .* aligned; else (.*?)  \[", text):
        assert others == "they are of single elements"
    copies = re.search(r"template <class Alignment> struct Copies \{(.*?)\n\};", text, re.DOTALL)
    packs = re.search(
        r"_copy =[^;]*UniversalCopy<(\w+)>, \1>[^;]*Shape<(_1, )?_(8|16)>>\{\}\)\)", copies[1] if copies else ""
    )
    assert bool(packs) == ("tl::copy_tile stores" in text)
