"""What emitted sources claim of devices, pointers, instances, barriers and warps, computed again from their text."""

import re
from pathlib import Path

import pytest

from tests.golden.access_width import widest_access
from tests.golden.source_text import KernelText, Source, arguments
from tests.golden.test_claims import TL

CUDA = [path for path in TL if path.suffix == ".cu"]
ALWAYS = 48 << 10  # bytes of shared memory that each device allows a block


@pytest.mark.parametrize("path", CUDA, ids=str)
def test_devices_are_asked_for_the_shared_memory_that_they_may_lack(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source = Source.of(text)
    sizes = [int(size) for size in re.findall(r"static_assert\(sizeof\(Shared\) == (\d+)", text)]
    arch, asked = re.findall(r'tl::check_device\("(\w+)", device(?:, sizeof\(([\w:]+)\))?\)', text)[0]
    stated = re.search(r"where a block may have ([\d,]+) bytes of shared memory", source.about)
    most = max(sizes, default=0)
    wanted = most if most > ALWAYS and not arch.endswith("a") else 0
    assert (int(stated[1].replace(",", "")) if stated else 0) == wanted
    assert bool(asked) == bool(wanted)
    if "::" in asked:
        inside = text[text.index(f"namespace {asked.split('::')[0]} {{") :]
        assert f"sizeof(Shared) == {most}" in inside[: inside.index("\n}  // namespace")]


@pytest.mark.parametrize("path", CUDA, ids=str)
def test_instances_are_as_aligned_as_their_widest_access(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        chosen = [view for view in kernel.views() if view.alignment is None]
        assert bool(chosen) <= bool(kernel.instance)
        if chosen and "tma_can_address<Alignment>" not in kernel.body:
            widths = {view.name: widest_access(kernel, view) for view in chosen}
            assert kernel.instance == max(widths.values())
            assert all(widths[view.name] > view.element for view in chosen), widths


def test_there_are_instances_of_several_widths() -> None:
    kernels = [kernel for path in CUDA for kernel in Source.of(path.read_text(encoding="utf-8")).kernels]
    assert {4, 16} <= {kernel.instance for kernel in kernels}


@pytest.mark.parametrize("path", CUDA, ids=str)
def test_pointers_are_checked_for_the_alignment_of_accesses(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source, checked = Source.of(text), {}
    for bytes_, names in re.findall(r"!tl::aligned<(\d+)>\(([^)]*)\)", text):
        checked |= {name.strip(): int(bytes_) for name in names.split(",")}
    for kernel in source.kernels:
        for view in kernel.views():
            if view.name in checked:
                needed = min(view.alignment or kernel.instance, max(view.element, widest_access(kernel, view)))
                assert checked[view.name] >= needed, view.name
    stated = re.search(r"Base pointers must be (.*?) \(else TL_MISALIGNED\)", source.about)
    assert stated is not None
    if alike := re.fullmatch(r"(\d+)-byte aligned", stated[1]):
        assert set(checked.values()) == {int(alike[1])}
    else:
        said = {
            name: int(bytes_)
            for names, bytes_ in re.findall(r"([\w, ]+?) to (\d+) bytes", stated[1].removeprefix("aligned, "))
            for name in re.split(r", | and ", names.strip())
        }
        assert said == {name: bytes_ for name, bytes_ in checked.items()}


BARRIER = re.compile(r"// ((?:RAW|WAR|WAW): all [^\n]*(?:\n *//[^\n]*)*)\n\s*tl::sync_threads\(\);")
HAZARD = re.compile(r"(RAW|WAR|WAW): all [\w ]*?threads(?: that come here)? have (stored|read) (.*?) before any")


@pytest.mark.parametrize("path", CUDA, ids=str)
def test_tiles_of_barriers_are_used_before_and_behind_them(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        for found in BARRIER.finditer(kernel.body):
            for order, done, tiles in HAZARD.findall(" ".join(re.sub(r"\n *//", " ", found[1]).split())):
                assert (order == "WAR") == (done == "read")
                for tile in re.split(r", | and ", tiles):
                    assert re.search(rf"\b{tile}\b", kernel.body[: found.start()]), tile
                    if "memory" not in found[1]:
                        assert re.search(rf"\b{tile}\b", kernel.body[found.end() :]) or "for (" in kernel.body, tile


def test_barriers_of_all_kinds_are_stated() -> None:
    found = [each for path in TL for each in HAZARD.findall(path.read_text(encoding="utf-8"))]
    assert {"RAW", "WAR"} <= {order for order, *_ in found} and len(found) > 20


@pytest.mark.parametrize("path", CUDA, ids=str)
def test_b_comes_by_the_ldmatrix_that_a_warp_executes(path: Path) -> None:
    """An x4 loads B of two MMAs, each of 8 columns; an x2 what is left of an odd number."""
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        for accumulator, stated in gemms(kernel):
            columns = columns_of_warp(kernel, accumulator)
            if columns is None or " by ldmatrix" not in stated:
                continue
            tiles = columns // 8
            widths = " and ".join([".x4"] * (tiles > 1) + [".x2"] * (tiles % 2))
            loaded = re.search(r"B by ldmatrix(\.x\d(?: and \.x\d)?)", stated)
            assert loaded is not None and loaded[1] == widths, (tiles, stated)


def gemms(kernel: KernelText) -> list[tuple[str, str]]:
    """(accumulator, what is stated) of each MMA."""
    found = []
    for call in re.finditer(r"((?: *//[^\n]*\n)+)\s*tl::gemm\w*(?=\()", kernel.body):
        stated = " ".join(re.sub(r"\n *//", " ", call[1]).split())
        found.append((arguments(kernel.body, call.end())[2], stated))
    return found


def split_of(kernel: KernelText, tile: str) -> tuple[int, int] | None:
    """The warps along M and N of an accumulator of mma.sync."""
    layout = re.search(rf"tl::Fragment<[\w:]+, (\w+)>\s+[^;]*\b{tile}\b", kernel.body)
    warps = layout and re.search(rf"using {layout[1]} = tl::MmaAccumulator<.*tl::Warps<(\d+), (\d+)>>;", kernel.head)
    return (int(warps[1]), int(warps[2])) if warps else None


def columns_of_warp(kernel: KernelText, tile: str) -> int | None:
    layout = re.search(rf"tl::Fragment<[\w:]+, (\w+)>\s+[^;]*\b{tile}\b", kernel.body)
    found = layout and re.search(
        rf"using {layout[1]} = tl::MmaAccumulator<\w+, (\w+), tl::Warps<\d+, (\d+)>>;", kernel.head
    )
    if not found:
        return None
    columns = int(found[1]) if found[1].isdigit() else kernel.constants[found[1]]
    return columns // int(found[2])


@pytest.mark.parametrize("path", CUDA, ids=str)
def test_the_split_of_each_gemm_is_stated(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        splits = {each: split for each, _ in gemms(kernel) if (split := split_of(kernel, each)) is not None}
        above = re.search(r"((?:// [^\n]*\n)+)constexpr int threads = ", kernel.head)
        if not splits or above is None:
            continue
        words = " ".join(above[1].replace("// ", " ").split())
        assert all(f"{m} along M by {n} along N" in words for m, n in splits.values()), words
        if len(set(splits.values())) > 1:
            assert all(re.search(rf"\b{tile}\b", words) for tile in splits), words
