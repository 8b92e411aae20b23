"""What the head of an emitted source claims of sums and of indices from memory, computed again from its text."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.golden.schedule import trace
from tests.golden.source_text import KernelText, Source, Values, closing, value
from tests.golden.test_claims import ROOT, TL

FOR = re.compile(r"\bfor \((?:const )?int (\w+) = ([^;]*?)(?:, [^;]*)?; (\w+) < ([^;]*);")
SUMS = re.compile(r"tl::gemm(?:_start)?\(|\+=")


@pytest.mark.parametrize("path", TL, ids=str)
def test_the_order_of_sums_depends_on_what_is_stated(path: Path) -> None:
    source = Source.of(path.read_text(encoding="utf-8"))
    stated = re.search(r"Batch-invariant: the order in which an element's terms are added (.*?)\.", source.about)
    if stated is None:
        return
    words = set(re.findall(r"\w+", stated[1]))
    for kernel in source.kernels:
        loaded = {name for kind, name in kernel.parameters if "*" in kind}
        for bound in bounds_of_sums(kernel):
            names = closure(bound, kernel)
            assert {name for name in names if name in source.sizes} <= words
            tensors = {name.removesuffix("_data") for name in loaded}
            assert names & tensors <= words


def bounds_of_sums(kernel: KernelText) -> Iterator[str]:
    """The bounds of the innermost loops that add terms."""
    for found in FOR.finditer(kernel.body):
        start = kernel.body.index(")", found.end())
        body = kernel.body[start : closing(kernel.body, kernel.body.index("{", start))]
        if SUMS.search(body) and not FOR.search(body):
            yield f"{found[2]} {found[4]}"


def closure(expression: str, kernel: KernelText) -> set[str]:
    """The names in an expression, and in the definitions of those."""
    found, pending = set[str](), [expression]
    while pending:
        for name in set(re.findall(r"\b[A-Za-z_]\w*", pending.pop())) - found:
            found.add(name)
            pending.append(kernel.definitions.get(name, ""))
    return found


@pytest.mark.parametrize("path", TL, ids=str)
def test_tensors_that_decide_trip_counts_are_named(path: Path) -> None:
    source = Source.of(path.read_text(encoding="utf-8"))
    for kernel in source.kernels:
        tensors = {name.removesuffix("_data") for kind, name in kernel.parameters if "int*" in kind}
        for found in FOR.finditer(kernel.body):
            for name in closure(found[4], kernel) & tensors:
                assert re.search(rf"The elements of .*\b{name} \(trip counts.* not validated", source.about), name


TIMELINE = re.compile(r"^ *// ( +step +TMA +)(warpgroup 0 +)warpgroup 1\n((?: *//   \d+ .*\n)+)", re.M)


@pytest.mark.parametrize("path", [path for path in TL if "sm_90a" in path.parts], ids=str)
def test_the_timeline_of_ping_pong_has_the_order_of_the_mmas(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        found = TIMELINE.search(kernel.body)
        assert bool(found) == ("mma_started" in kernel.body)
        if found is None:
            continue
        start, middle = len(found[1]), len(found[1]) + len(found[2])
        rows = [line.split("// ", 1)[1] for line in found[3].splitlines()]
        for group, column in enumerate((slice(start, middle), slice(middle, None))):
            started = [event.of[0] for event in trace(kernel, second=group == 1) if event.kind == "gemm_start"]
            # The MMAs of one part add to one accumulator.
            started = [name for n, name in enumerate(started) if n == 0 or name != started[n - 1] or name == "acc_o"]
            stated = [name for row in rows for name in re.findall(r"\b(\w+) \d+", row[column]) if name in set(started)]
            assert len(stated) >= 3 and started[: len(stated)] == stated


UNROUNDED = re.compile(r"\b(\w+) adds (\w+) before it is rounded to (\w+)\.")


@pytest.mark.parametrize("path", TL, ids=str)
def test_sums_of_a_tile_before_it_is_rounded_are_stated(path: Path) -> None:
    source = Source.of(path.read_text(encoding="utf-8"))
    stated = {(total, tile) for total, tile, _ in UNROUNDED.findall(source.about)}
    found = set[tuple[str, str]]()
    for kernel in source.kernels:
        body = re.sub(r"//.*", "", kernel.body)
        declared = re.findall(
            r"tl::(?:Fragment|Array<tl::SharedTile|SharedTile)<([\w:]+), [^;]*> ([^;]+);", kernel.head + body
        )
        narrow = {name for kind, names in declared if kind != "float" for name in re.findall(r"\w+", names)}
        for total in re.finditer(r"tl::(?:thread_)?reduce_sum<\d>\((\w+), (\w+)", body):
            for copy in re.finditer(rf"tl::copy\({total[1]}, (\w+)\);", body):
                between = body[min(total.end(), copy.end()) : max(total.start(), copy.start())]
                if copy[1] in narrow and not re.search(rf"\b{total[1]}\([^;=]*\) [-+*/]?= |\({total[1]}, ", between):
                    found.add((total[2], total[1]))
    assert stated == found


@pytest.mark.parametrize("path", TL, ids=str)
def test_sizes_have_32_bits_and_offsets_64(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source = Source.of(text)
    assert "Sizes are 32-bit, offsets of elements 64-bit." in source.about
    launcher = text[text.index(f'extern "C" tl_status {path.stem}(') :]
    assert all(re.search(rf"\bint {size}\b", launcher) for size in source.sizes)
    tensor = (ROOT / "headers/tl/common/tensor.h").read_text(encoding="utf-8")
    assert "int64_t offset = 0;" in tensor and "int64_t stride[rank];" in tensor


@pytest.mark.parametrize("path", [path for path in TL if "sm_90a" in path.parts], ids=str)
def test_tensors_without_a_map_are_those_of_loops_whose_trip_counts_elements_decide(path: Path) -> None:
    """A loop's load by TMA of a tensor that no grid covers needs a map: of an empty tensor there is none."""
    text = path.read_text(encoding="utf-8")
    source = Source.of(text)
    stated = re.search(r"Where ([\w, ]+) is empty the trip counts must be 0", source.about)
    named = set(re.findall(r"\w+", stated[1])) - {"or"} if stated else set()
    maps = {name.split("_")[0] for name in re.findall(r"tl::tma_load(?:_slab)?\((\w+)_map, ", text)}
    assert {name.split("_")[0] for name in named} <= maps
    if " (trip counts" not in source.about:
        assert not named
    if path.stem == "mla_decode":
        assert named == {"KV", "K_pe"}


SCHEDULES = sorted(path for path in (ROOT / "emitted").rglob("*.cu") if "struct Schedule" in path.read_text())


@pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_schedule_has_the_values_of_its_example(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    body = text[text.index("struct Schedule {") :].partition("\n};")[0]
    about = re.sub(r"\n *// ?", " ", body)
    example = re.search(r"For example, with ([\w =]+): ([^.]*)\.", about)
    assert example
    *sizes, size = example[1].split(" = ")
    values = Values({name: int(size) for name in sizes}, {}, Random(0))
    values.update({name: int(number) for name, number in re.findall(r"\b(\w+) = (\d+)\b", text.partition("struct")[0])})
    stated = dict(re.findall(r"(\w+) (\d+)", example[2]))
    members = re.findall(r"\bint (\w+) = ([^;]*);", re.sub(r"//.*", "", body))
    assert [name for name, _ in members] == [*stated]
    for name, expression in members:
        values[name] = value(expression, values)
        assert values[name] == int(stated[name]), name
