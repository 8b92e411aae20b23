"""What emitted sources claim of themselves, computed again from nothing but their text."""

import ast
import functools
import re
from collections.abc import Iterator
from math import ceil, prod
from pathlib import Path
from random import Random

import pytest

from tests.golden.access_width import widest_copy
from tests.golden.cases import GOLDEN, Golden
from tests.golden.schedule import Event, trace
from tests.golden.source_text import SIZES, KernelText, Source, Values, View, value
from tests.golden.source_text import arguments as arguments_of_call
from tests.host.kernels import load_body

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (*ROOT.glob("emitted/**/*.cu"), *ROOT.glob("emitted/**/*.hip"), *ROOT.glob("tests/engine/kernels/*.cu"))
WORDS = {"gelu", "weights"}  # of formulas and sentences, besides being arguments
TL = sorted(path for path in SOURCES if not {"cute", "ck"} & set(path.relative_to(ROOT).parts))


@pytest.mark.parametrize("path", TL, ids=str)
def test_rows_and_tiles_are_aligned_as_claimed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    source = Source.of(text)
    assert source.kernels
    for kernel in source.kernels:
        views = list(kernel.views())
        assert views or "tl::tma_load" in text, "all tensors are moved by TMA, or some have views"
        for view in views:
            asked = view.alignment is None
            runs = list(source.executions(kernel, 60, aligned=asked))
            claimed = view.alignment or kernel.instance
            columns = list(kernel.tiles(view))
            starts = [start for values in runs for start in starts_of(view, columns, values)]
            assert not [start for start in starts if start % claimed], f"{view.name}: not all at multiples of {claimed}"
            narrow = claimed < widest_copy(kernel, view)
            weak = narrow and columns and not any(start % (2 * claimed) for start in starts)
            assert not weak, f"{view.name}: all that is copied starts at multiples of {2 * claimed} bytes"


@pytest.mark.parametrize("path", TL, ids=str)
def test_registers_are_those_of_the_tiles_that_are_declared(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        claimed = re.search(
            r"---- registers: (\d+) per thread for tiles(?:, (\d+) of which hold the next tile)?", kernel.head
        )
        fragments, prefetched = fragment_bytes(kernel), prefetched_bytes(kernel)
        found = (-(-fragments // 4) + prefetched // 4, prefetched // 4)
        assert (int(claimed[1]), int(claimed[2] or 0)) == found if claimed else found == (0, 0)


@pytest.mark.parametrize("path", TL, ids=str)
def test_launchers_take_the_sizes_that_the_head_states(path: Path) -> None:
    source = Source.of(path.read_text(encoding="utf-8"))
    stated, random, constants = list(limits_of(source)), Random(2), source.kernels[-1].constants
    for _ in range(400):
        values = Values({**constants, **{name: any_size(random) for name in source.sizes}}, {}, random)
        rejected = [condition for condition in source.rejected if value(condition, values)]
        exceeded = [limit for limit in stated if not value(limit, values)]
        assert bool(rejected) == bool(exceeded), (dict(values), rejected, exceeded)


def any_size(random: Random) -> int:
    """A size of any magnitude, often a multiple of a power of two."""
    shift = random.choice((0, 3, 7))
    return random.choice((0, 1, int(2 ** random.uniform(0, 31)) >> shift << shift))


def limits_of(source: Source) -> Iterator[str]:
    """What sizes must be in the words of the head of a file, as conditions."""
    for sentence in source.about.split(". "):
        found = re.fullmatch(r"(.*) must (be .*|not be .*); else TL_\w+", sentence)
        for size in re.split(r", (?![^(]*\))| and ", found[1]) if found else ():
            yield limit_of(size.replace(" times ", " * "), found[2]) if found else ""


def limit_of(size: str, stated: str) -> str:
    """One limit as a condition."""
    if most := re.fullmatch(r"be at most ([\d,]+) \(.*\)", stated):
        return f"{size} <= {most[1].replace(',', '')}"
    if multiple := re.match(r"be (?:a multiple|multiples) of (?:\w+ = )?(\d+),", stated):
        return f"({size}) % {multiple[1]} == 0"
    if given := re.fullmatch(r"not be 0 where (\w+) is not", stated):
        return f"{given[1]} == 0 || {size} != 0"
    raise ValueError(stated)


@pytest.mark.parametrize("path", [path for path in TL if path.suffix == ".hip"], ids=str)
def test_workgroups_of_a_cu_are_those_that_registers_and_lds_have_room_for(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        check_occupancy(kernel.head, kernel.body, kernel.constants)


OCCUPANCY = re.compile(
    r"per CU: (\d+)(?: to (\d+))? by registers \(tiles take (\d+)(?:, operands up to (\d+))?\), (\d+) by LDS: "
    r"([\d to]+), (limited by \w+|as the compiler)"
)


def check_occupancy(head: str, body: str, constants: dict[str, int]) -> None:
    """The workgroups of a CU that are stated above an AMD kernel, from its registers, bounds and LDS."""
    head, body = (re.sub(r"\n\s*// ", " ", each) for each in (head, body))
    claimed, shared = OCCUPANCY.search(head), re.search(r"sizeof\(Shared\) == (\d+)", head)
    per_simd = constants["threads"] / 64 / 4  # waves of a workgroup on each of 4 SIMDs
    waves = constants.get("waves_per_simd_by_registers", max(1, ceil(per_simd)))
    of_mmas = [int(each) for each in re.findall(r"; operands from LDS take (\d+) VGPRs", body)]
    if not shared or not (of_mmas or "waves_per_simd_by_registers" in constants):
        assert claimed is None
        return
    assert claimed is not None
    tiles = re.search(r"---- registers: (\d+) per thread for tiles", head)
    assert tiles is not None and tiles[1] == claimed[3] and int(claimed[4] or "0") == max(of_mmas, default=0)
    assert ("waves_per_simd_by_registers" in constants) == ("AccVGPRs among them" not in head)
    limit = re.search(r"at most (\d+) registers per thread", head)
    assert limit is not None and int(limit[1]) == 512 // waves
    taken = int(claimed[3]) + int(claimed[4] or "0")
    least, most = waves / per_simd, max(waves, min(8, 512 // (ceil(taken / 8) * 8))) / per_simd
    by_lds = 65536 // (ceil(int(shared[1]) / 512) * 512)
    assert (least, most, by_lds) == (int(claimed[1]), int(claimed[2] or claimed[1]), int(claimed[5]))
    resident = sorted({min(each, by_lds) for each in (least, most)})  # by the registers that the compiler takes
    assert [int(each) for each in claimed[6].split(" to ")] == resident
    limiters = {"LDS": by_lds <= least and least < most or by_lds < least, "both": by_lds == least == most}
    limiters["registers"] = by_lds >= most and not limiters["both"]
    of_both = "as the compiler" if not any(limiters.values()) else ""
    assert claimed[7] == of_both or limiters[claimed[7].removeprefix("limited by ")]


@pytest.mark.parametrize("path", TL, ids=str)
def test_tiles_in_flight_by_cp_async_are_as_many_as_stated(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        stated = re.findall(r"(one tile|no tile|\d+ tiles) in flight while one is used", kernel.head)
        expected = {int(each.replace("no", "0").replace("one", "1").split()[0]) for each in stated}
        found = {tiles_in_flight(trace(kernel))} if "tl::cp_async_wait<" in kernel.body else set()
        assert found == expected


def tiles_in_flight(events: list[Event]) -> int:
    """The most tiles in flight while one is used. Raises AssertionError where a tile is used before it has arrived."""
    copied = {event.of for event in events if event.kind == "copy_async" and event.number is not None}
    groups: list[set[tuple[tuple[str, ...], int]]] = [set()]
    arrived: set[tuple[tuple[str, ...], int]] = set()
    most = 0
    for event in events:
        tile = (event.of, event.number)
        if event.kind == "copy_async":
            groups[-1].add(tile)
        elif event.kind == "cp_async_commit":
            groups.append(set())
        elif event.kind == "cp_async_wait":
            complete = max(0, len(groups) - 1 - event.number)
            arrived = arrived.union(*groups[:complete])
            groups = groups[complete:]
        elif event.kind == "use" and event.of in copied:
            assert tile in arrived, f"{event.of[0]} of iteration {event.number} has not arrived"
            most = max(most, sum(map(bool, groups)))
    return most


@pytest.mark.parametrize("path", [path for path in TL if "sm_90a" in path.parts], ids=str)
def test_the_producer_is_as_many_tiles_ahead_as_its_pipelines_have_stages(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        body = re.sub(r"\s+(?://)?\s*", " ", kernel.body)
        stages = {kernel.constants.get(each) for each in re.findall(r"tl::Tma\w*Pipeline<(\w+)", body)}
        first = re.findall(r"TMA fills up to (one|\d+) stages? before iteration 0", kernel.head)
        ahead = re.findall(r"up to (one|\d+) (?:tile|iteration)s? ahead of the consumers", body)
        assert {1 if each == "one" else int(each) for each in first + ahead} <= stages
        assert bool(ahead) == ("producer_acquire(" in body)


@pytest.mark.parametrize("path", [path for path in TL if "sm_90a" in path.parts], ids=str)
def test_mmas_in_flight_after_a_wait_are_those_that_are_stated(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        for second in (False, True):
            in_flight: list[str] = []
            for event in trace(kernel, second=second):
                if event.kind == "gemm_start":
                    in_flight += event.of
                elif event.kind == "gemm":
                    in_flight = []
                elif event.kind == "gemm_wait":
                    in_flight = in_flight[len(in_flight) - event.number :] if event.number else []
                    assert not set(event.of) & set(in_flight), f"{event.of} may be in flight behind the wait"
                    if names := re.match(r"(\w+(?:(?:, | and )\w+)*) stays? in flight", event.comment):
                        assert set(re.split(", | and ", names[1])) == set(in_flight)


@pytest.mark.parametrize(
    "golden", [each for each in GOLDEN if each.style == "tl"], ids=lambda each: f"{each.folder}/{each.example}"
)
def test_the_head_documents_what_the_specialisation_has(golden: Golden) -> None:
    """An argument of the Python function that the head speaks of is a name in the code."""
    for path in sorted((ROOT / "emitted" / golden.folder).glob("*.*")):
        arguments = arguments_of(path.stem, ROOT / "examples" / golden.example)
        if path in TL and arguments:
            text = path.read_text(encoding="utf-8")
            head, code = text[: text.index("#include")], re.sub(r"//.*", "", text)
            about = " ".join(
                part for part in head.split("//\n")[1:] if not re.match(r"// Compile-time|//   |// To change ", part)
            )
            named = {each for each in arguments - WORDS if re.search(rf"\b{each}\b", about)}
            assert {each for each in named if not re.search(rf"\b{each}\b", code)} == set()


@functools.cache
def parsed(path: Path) -> list[ast.stmt]:
    """The statements of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8")).body


def arguments_of(function: str, path: Path) -> set[str]:
    """The arguments of a function of a Python file; none where the file has no such function."""
    return {
        argument.arg
        for node in parsed(path)
        if isinstance(node, ast.FunctionDef) and node.name == function
        for argument in node.args.args
    }


BUDGET = re.compile(
    r"---- (?:shared memory|LDS): ([\d,]+) of [\d,]+ bytes per (?:block|workgroup)(?: \(([\d,]+) (?:are|is) padding\))?"
)
ALIGNMENT = 1024  # of a swizzled tile: what parts of time leave free is not stated
TILE = re.compile(r"// ([^\n]*(?:\n *//[^\n]*)*)\n *tl::SharedTile(?:1D)?<([\w:]+), ([^>]+)> \w+(?:\[(\w+)\])?;")


@pytest.mark.parametrize("path", TL, ids=str)
def test_shared_memory_is_what_the_budget_states(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        found = BUDGET.search(kernel.head)
        if found is None:
            assert "struct Shared" not in kernel.head
            continue
        struct, _, rest = kernel.head.partition("struct Shared {")[2].partition("static_assert(sizeof(Shared) == ")
        members = [number(each) for each in re.findall(r"// ([\d,]+) bytes", struct)]
        parts = [  # of time, which share memory
            sum(number(each) for each in re.findall(r"// ([\d,]+) bytes", part))
            for part in re.findall(r"^  struct \w+ \{\n(.*?)^  \};", struct, re.DOTALL | re.MULTILINE)
        ]
        least = sum(members) - sum(parts) + max(parts, default=0) + number(found[2] or "0")
        assert int(rest[: rest.index(",")]) == number(found[1])
        assert number(found[1]) == least or (parts and least < number(found[1]) < least + ALIGNMENT * len(members))
        for about, element, extents, stages in TILE.findall(struct):
            assert list(tile_faults(" ".join(about.split()), element, extents, stages or "1", kernel)) == []


def tile_faults(about: str, element: str, extents: str, stages: str, kernel: KernelText) -> Iterator[str]:
    """What is said of a shared tile and is not so: its bytes, stages, rows, slabs of columns and swizzle."""
    values = Values(kernel.constants, {}, Random(0))
    swizzle = re.search(r"tl::Swizzle(\d+)B", extents)
    shape = [value(size, values) for size in extents.split(", ") if not size.startswith("tl::")]
    row, count = shape[-1] * SIZES[element.removeprefix("tl::")], value(stages, values)
    slabs = re.search(r"(\d+) slabs of (\d+) columns", about)
    interleaved = re.search(r"tl::InterleavedRows<(\d+)>", extents)
    rows = int(interleaved[1]) if interleaved else 0
    run = rows * SIZES[element.removeprefix("tl::")]
    claims = {
        r"^([\d,]+) bytes": prod(shape[:-1]) * row * count,
        r"in (\d+) stages": count,
        r"; rows of ([\d,]+) bytes": row,
        r"(\d+)-byte swizzle": int(swizzle[1]) if swizzle else 0,
        r"rows interleaved by (\d+)": rows,
        r"rows (\d+) q to": rows,
        r"q to \d+ q \+ (\d+) of column n": rows - 1,
        r"the (\d+) bytes from": run,
        r"bytes from (\d+) \*": run,
        r"\* \(([\d,]+) \* q \+ n\) on, but the tile's 16-byte chunk c is at c \^ \(\(c / 8\) % 4\)": shape[-1],
        r"(\d+) slabs": shape[-1] // int(slabs[2]) if slabs else 0,
    }
    for pattern, actual in claims.items():
        stated = re.search(pattern, about)
        if stated and number(stated[1]) != actual:
            yield f"{about}: {actual}"


def number(text: str) -> int:
    """A number with commas between thousands."""
    return int(text.replace(",", ""))


@pytest.mark.parametrize("path", TL, ids=str)
def test_the_warps_of_an_mma_are_those_of_the_block(path: Path) -> None:
    lanes = 64 if path.suffix == ".hip" else 32
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        for each in re.findall(r"(\d+) (?:warp|wave)s: (\d+) along M by (\d+) along N", kernel.head):
            count, along_m, along_n = map(int, each)
            assert count == along_m * along_n and count * lanes == kernel.constants["threads"]


def fragment_bytes(kernel: KernelText) -> int:
    """The bytes of a thread in the fragments that a kernel declares: the values of their layouts, times their type."""
    values: dict[str, int] = {}
    for about, name in re.findall(r"((?:^// .*\n)+)using (\w+_layout) =", kernel.head, re.M):
        each, same = re.search(r"V(\d+)\s+(?://\s+)?values", about), re.search(r"the same as (\w+):", about)
        values[name] = int(each[1]) if each else values[same[1]] if same else 0
    declared = re.findall(r"tl::Fragment<([\w:]+), (\w+)>\s+([\w,\s]+);", kernel.body)
    return sum(
        values[layout] * SIZES[kind.removeprefix("tl::")] * len(names.split(",")) for kind, layout, names in declared
    )


def prefetched_bytes(kernel: KernelText) -> int:
    """The bytes of a thread in tiles (tl::Staged) and vectors (tl::PrefetchedVector) on their way to shared memory."""
    total, values = 0, Values(kernel.constants, {}, Random(0))
    for found in re.finditer(r"tl::(Staged|Staged1D|StagedRows|PrefetchedVector)<", kernel.body):
        inside = kernel.body[found.end() : kernel.body.index(">", found.end())]
        kind, *extents, threads = inside.split(", ")[: 4 if found[1] in ("Staged", "StagedRows") else 3]
        count = prod(value(extent, values) for extent in extents)
        size, among = SIZES[kind.removeprefix("tl::")], value(threads, values)
        piece = 1 if found[1] == "PrefetchedVector" else 16 // size
        total += ceil(ceil(count / piece) / among) * piece * size
    return total


def starts_of(view: View, columns: list[str], values: Values) -> list[int]:
    """The distances of rows, and where tiles with these first columns start in them, in bytes."""
    starts = view.row_strides(values)
    starts += [int(value(column, values)) for column in columns]
    return [start * view.element for start in starts]


@pytest.mark.parametrize("path", TL, ids=str)
def test_calls_are_deterministic_where_no_atomic_adds_floats(path: Path) -> None:
    """The emitted sources have no atomics on integers."""
    text = path.read_text(encoding="utf-8")
    adds = re.search(r"\btl::(?:atomic_add\w*|tma_add\w*)\b", text)
    assert ("// Not deterministic: atomics add to " in text, "// Deterministic: " in text) == (bool(adds), not adds)


def test_launchers_allocate_nothing_and_wait_for_nothing() -> None:
    headers = [
        path.read_text(encoding="utf-8") for path in (ROOT / "headers/tl").rglob("*.h") if "host" not in path.parts
    ]
    calls = {call for text in headers for call in re.findall(r"\b(?:cuda|hip)[A-Z]\w*(?= *\()", text)}
    assert {"cudaLaunchKernel", "cudaMemsetAsync", "hipLaunchKernel"} <= calls
    assert not [call for call in calls if re.search(r"Malloc|Free|Synchronize|Memcpy|Memset$|Query", call)]


def test_tensors_whose_elements_are_indices_are_named(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path,
        """
        rows_shared = T.alloc_shared((4,), "int32")
        X_local = T.alloc_fragment((64,), "float32")
        T.copy(rows[0:4], rows_shared)
        T.clear(X_local)
        stop = counts[0]
        for k in T.serial(stop):
            row = rows_shared[k]
            for i in T.Parallel(64):
                X_local[i] += T.if_then_else(flags[i] > 0, X[row, i], 0)
        T.copy(X_local, Y)
        """,
        'rows: T.Tensor((4,), "int32"), counts: T.Tensor((1,), "int32"), flags: T.Tensor((64,), "int32"), '
        'X: T.Tensor((8, 64), "float32"), Y: T.Tensor((64,), "float32")',
    )
    named = (
        "// The elements of rows (index X along dimension 0) and counts (trip counts) are not validated: where they "
        "lead out of\n// bounds, zeros are loaded and used as values of the tensor."
    )
    assert named in kernel.source


MEMBER = re.compile(r"tl::SharedTile(1D)?<([\w:]+), ([^>]+)> (\w+)(?:\[\w+\])?;")
BOXES = re.compile(r"cp\.async\.bulk\.tensor\.(\d)d \(TMA\), (one|\d+) box(?:es)? of (\d+) x (\d+) per tile, (\d+|no)")
CP_ASYNCS = re.compile(r"cp\.async\.(c[ag]) of (\d+) bytes, (\d+) per (thread and )?tile")
MOVES = re.compile(r"tl::(tma_load|tma_load_for|tma_copy|copy_async(?:_once)?)(?:<\w+>)?\(")
Member = tuple[str, tuple[int, ...], int]  # element, shape, swizzle in bytes


@pytest.mark.parametrize("path", [path for path in TL if path.suffix == ".cu"], ids=str)
def test_copies_are_done_by_the_instructions_that_are_stated(path: Path) -> None:
    for kernel in Source.of(path.read_text(encoding="utf-8")).kernels:
        members = dict(shared_members(kernel))
        for paragraph in re.split(r"\n\s*\n", kernel.body):
            stated = ""
            for line in re.split(r"(?<=[;{])\n", paragraph):
                comment = " ".join(re.findall(r"^\s*// (.*)$", line, re.M))
                call = MOVES.search(line)
                stated = comment if re.search(r"cp\.async\.(bulk|c[ag])", comment) else stated
                tile = (
                    next((each for each in members if re.search(rf"\b{each}(?=[,)\[])", line)), None) if call else None
                )
                if call is not None and tile is not None:
                    assert list(move_faults(stated, line[call.start() :], members[tile], kernel)) == []


def shared_members(kernel: KernelText) -> Iterator[tuple[str, Member]]:
    """The shared tiles of a kernel, by their names."""
    values = Values(kernel.constants, {}, Random(0))
    for _, element, extents, name in MEMBER.findall(kernel.head):
        swizzle = re.search(r"tl::Swizzle(\d+)B", extents)
        shape = tuple(value(size, values) for size in extents.split(", ") if not size.startswith("tl::"))
        yield name, (element.removeprefix("tl::"), shape, int(swizzle[1]) if swizzle else 0)


def move_faults(stated: str, call: str, tile: Member, kernel: KernelText) -> Iterator[str]:
    """What is said of a copy to a shared tile and is not so."""
    element, shape, swizzle = tile
    total = prod(shape) * SIZES[element]
    if call.startswith("tl::tma"):
        found = BOXES.search(stated)
        if found is None:
            yield f"nothing is stated of {call}"
            return
        boxes, rows, columns = 1 if found[2] == "one" else int(found[2]), int(found[3]), int(found[4])
        corner = arguments_of_call(call, call.index("tl::at(") + len("tl::at"))
        claims = {
            "dimensions": (int(found[1]), len(corner)),
            "bytes": (boxes * rows * columns * SIZES[element], total),
            "rows": (rows, shape[0]),
            "swizzle": (0 if found[5] == "no" else int(found[5]), swizzle),
            "width": (columns * SIZES[element], swizzle or shape[-1] * SIZES[element]),
        }
        yield from (f"{what} of {call}: {said}, {actual}" for what, (said, actual) in claims.items() if said != actual)
        return
    copies = CP_ASYNCS.search(stated)
    if copies is None:
        yield f"nothing is stated of {call}"
        return
    width, count = int(copies[2]), int(copies[3]) * (kernel.constants["threads"] if copies[4] else 1)
    if width * count != total or (copies[1] == "cg") != (width == 16):
        yield f"{call}: {width} bytes x {count} of {total}"
