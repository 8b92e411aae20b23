"""Runs kernels at extreme run-time sizes on the CPU engine, and lists each int that overflows.

    python tests/host/overflow/audit.py FILE.cu|.hip|.py ... [--target TARGET] [--empty]

A kernel is built with g++'s -fsanitize=signed-integer-overflow, and a few blocks of it run for each combination of
sizes near 2**31, of products of sizes beyond 2**31 and 2**32, and of 0, that its launcher accepts. Tensors are sparse
memory: terabytes of address space of which only written pages exist, with no access possible before and behind. Loops
with many iterations run their first one and their last ones (`skipping`). A run is cut after some seconds of CPU time,
and after fewer once several runs of a source were cut: a launch may have 2**30 tiles for each block that runs. With
`--empty` sizes of 0 alone: their outcome is TL_OK or TL_INVALID_SIZE.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[3]
    sys.path[:0] = [str(ROOT / "transpile"), str(ROOT / "runtime"), str(ROOT)]

from tests.built import built
from tile2cu_runtime import paths
from tile2cu_runtime.compile import Build, host_flags, precompiled_headers
from tile2cu_runtime.compilers import find_gxx
from tile2cu_runtime.engine import load_engine
from tile2cu_runtime.spec import DTYPE_BYTES, PACKED_DTYPES, Manifest, ScalarArgument, TensorArgument, read_manifest

_HANDLERS = Path(__file__).with_name("handlers.c")
_SANITIZE = "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift-exponent"
_MOST_BYTES = 2**46  # of all tensors, of 2**47 of address space
_CUT = 3  # runs of a source that take their full time: others are cut after a second
NO_MEMORY = 98  # no launcher's status: there is no address space for the tensors or the workspace
_REJECTED = (1, 2, 3, NO_MEMORY)  # TL_INVALID_SIZE and so on
_LAUNCH_FAILED = 1001

Table = Callable[[Mapping[str, int], int], Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a launcher returned for some sizes (None: it did not end), and where ints overflowed."""

    sizes: Mapping[str, int]
    status: int | None
    overflows: tuple[str, ...] = ()
    report: str = ""

    @property
    def accepted(self) -> bool:
        return self.status not in _REJECTED

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong: overflows, and what ended the run other than its time."""
        died = (f"status {self.status}: {self.report}",) if self.status not in (None, 0, *_REJECTED) else ()
        return (*self.overflows, *died)


def library_of(source: Path, *, absolute: bool = False) -> Path:
    """An emitted source, with its header beside it, as a library for the CPU engine whose overflows are seen."""
    text = skipping(source.read_text(encoding="utf-8"), absolute=absolute)
    warps = "64" if source.suffix == ".hip" else "32"
    flags = (*host_flags(check=False), "-O1", "-w", _SANITIZE, f"-DTL_WARP_SIZE={warps}")
    include, name = ("-I", str(paths.headers_dir())), f"{source.stem}_overflow.so"
    gxx = find_gxx()
    compiled = (gxx.path, "-x", "c++", *flags, *include)
    changed = "#define" in text.partition("#include <tl/")[0]  # the headers' contents may depend on it
    library = () if changed else precompiled_headers(Build(compile=compiled, link=(), identity=gxx.version))
    commands = [
        [*compiled, *library, "-c", "kernel.cu", "-o", "kernel.o"],
        [gxx.path, "-shared", "kernel.o", str(_handlers()), "-o", name],
    ]
    header = source.with_suffix(".h")
    texts = {"kernel.cu": text, header.name: header.read_text(encoding="utf-8")}
    return built(name, commands, _HANDLERS, texts=texts)


def _handlers() -> Path:
    command = [find_gxx().path, "-x", "c", "-fPIC", "-O1", "-I", str(paths.headers_dir())]
    return built("handlers.o", [[*command, "-c", str(_HANDLERS), "-o", "handlers.o"]], _HANDLERS)


_MOVE = r"(?:\+\+\1|\1 \+= ([^;,]+?)|\1 = tl::saturating_add\(\1, ([^;,]+?)\))"
_LOOP = re.compile(rf"for \(int (\w+) = ([^;]+); \1 < ([^;]+); {_MOVE}((?:, [^;]*?)?)\) ", re.DOTALL)
_WHILE = re.compile(r"^( *)while \((.+)\) \{$", re.MULTILINE)
_ITERATIONS = 6  # of a `while`, whose iterations no text tells how to skip
_STAGES = re.compile(r"\b\w*stages\w* = (\d+)")
_NEXT = """
namespace {
template <class Stop> inline int next_that_runs(int i, int step, Stop stop) {
  constexpr long long period = %d;  // of the stages, with both phases of their barriers
  const long long left = (static_cast<long long>(stop) - i - step) / step;  // behind the next iteration
  %s
}
}  // namespace
"""
# The last iterations, fewer than two periods of the stages.
_OF_LOOP = "return left < 2 * period ? i + step : static_cast<int>(i + step * (1 + (left / period - 1) * period));"
# Whole periods of stages: the first one, and those before powers of two.
_ABSOLUTE = """\
if (left < 0 || (i + 1LL) % period != 0 || step != 1) return i + step;
  for (long long end = 1 << 20; end <= 1LL << 31; end *= 2) {
    const long long first = (end - 1) / period * period;
    if (first > i) return static_cast<int>(first < stop ? first : stop);
  }
  return i + step;"""


def skipping(text: str, *, absolute: bool = False) -> str:
    """An emitted source whose loops skip iterations: behind the first one they go on with one of the last ones.

    They skip whole periods of a pipeline's stages, with both phases of the barriers. `absolute`: which ones does not
    depend on the loop's end, for producers and consumers whose loops end at different iterations. A `while` runs its
    first iterations only: blocks begin everywhere, so that those of the last block are among the last.
    """
    period = 2 * math.lcm(*map(int, _STAGES.findall(text)))
    before, marker, after = text.rpartition("#include <tl/")
    include, newline, rest = after.partition("\n")
    rest = _LOOP.sub(_skipping_head, rest)
    rest = _WHILE.sub(rf"\1for (int few = 0; few < {_ITERATIONS} && (\2); ++few) {{", rest)
    return before + marker + include + newline + _NEXT % (period, _ABSOLUTE if absolute else _OF_LOOP) + rest


def _skipping_head(loop: re.Match[str]) -> str:
    name, start, stop, *steps, besides = loop.groups()
    step = next(filter(None, steps), "1")
    return f"for (int {name} = {start}; {name} < {stop}; {name} = next_that_runs({name}, {step}, {stop}){besides}) "


def run(
    library: Path,
    manifest: Manifest,
    sizes: Mapping[str, int],
    *,
    scalars: Mapping[str, float] | None = None,
    tables: Mapping[str, Table] | None = None,
    seconds: int = 4,
    blocks: int = 3,
) -> Outcome:
    """Calls the launcher in a process of its own, for at most `seconds` of CPU time, and 20 times as long waiting.

    `tables`: the first elements of tensors of ints, by name, from the sizes and their number of elements; all other
    elements are zero.
    """
    engine = load_engine()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 20 * seconds)
        status, report = 99, ""
        try:
            status = _call(library, manifest, sizes, scalars or {}, tables or {}, writing, blocks)
            report = json.dumps(engine.report().get("findings", [])[:1])[:2000] if status >= 1000 else ""
        finally:
            os.write(writing, f"status\t{status}\t{report}\n".encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
        lines = [line.rstrip("\n").split("\t") for line in pipe]
    _, ended = os.waitpid(child, 0)
    found = tuple(_told(library, line) for line in lines if line[0] != "status")
    last = lines[-1] if lines and lines[-1][0] == "status" else None
    cut = os.WIFSIGNALED(ended) and os.WTERMSIG(ended) in (signal.SIGPROF, signal.SIGALRM)
    died = None if cut else 100 + ended
    return Outcome(
        sizes=sizes, status=int(last[1]) if last else died, overflows=found, report=last[2] if last else f"exit {ended}"
    )


def _call(
    library: Path,
    manifest: Manifest,
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
    tables: Mapping[str, Table],
    writing: int,
    blocks: int,
) -> int:
    loaded = ctypes.CDLL(str(library))
    ctypes.c_int.in_dll(loaded, "overflow_file").value = writing
    loaded.run_few_blocks(blocks)
    memory = loaded.sparse_memory
    memory.restype, memory.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    arguments: list[object] = []
    for each in manifest.arguments:
        if isinstance(each, TensorArgument):
            address = memory(bytes_of(each, sizes))
            if not address:
                return NO_MEMORY
            if each.name in tables:
                count = math.prod(extent.evaluate(sizes) for extent in each.shape)
                values = list(tables[each.name](sizes, count))[:count]
                element = {1: ctypes.c_int8, 4: ctypes.c_int32, 8: ctypes.c_int64}[DTYPE_BYTES[each.dtype]]
                ctypes.memmove(address, (element * len(values))(*values), len(values) * ctypes.sizeof(element))
            arguments.append(ctypes.c_void_p(address))
        elif isinstance(each, ScalarArgument):
            number = scalars.get(each.name, 1)
            is_float = "float" in each.dtype
            kind = (ctypes.c_double if each.dtype == "float64" else ctypes.c_float) if is_float else ctypes.c_int64
            arguments.append(kind(number if is_float else int(number)))
        else:
            arguments.append(ctypes.c_int32(sizes[each.name]))
    workspace = getattr(loaded, f"{manifest.entry}_workspace_size", None)
    count = 0
    if workspace is not None:
        workspace.restype = ctypes.c_size_t
        count = workspace(*(ctypes.c_int32(sizes[each.name]) for each in manifest.sizes))
    if count > _MOST_BYTES:
        return NO_MEMORY
    return int(loaded[manifest.entry](*arguments, ctypes.c_void_p(memory(count)), ctypes.c_size_t(count), None))


def bytes_of(tensor: TensorArgument, sizes: Mapping[str, int]) -> int:
    """The bytes of a tensor, none where an extent is a quotient by 0."""
    try:
        return _bytes_of(tensor, sizes)
    except ZeroDivisionError:
        return 0


def _bytes_of(tensor: TensorArgument, sizes: Mapping[str, int]) -> int:
    count = math.prod(extent.evaluate(sizes) for extent in tensor.shape)
    if tensor.strides:
        last = sum(
            (extent.evaluate(sizes) - 1) * stride.evaluate(sizes)
            for extent, stride in zip(tensor.shape, tensor.strides, strict=True)
        )
        count = last + 1 if count else 0
    return (count + 1) // 2 if tensor.dtype in PACKED_DTYPES else count * DTYPE_BYTES[tensor.dtype]


def _told(library: Path, line: list[str]) -> str:
    """An overflow as a text: the operation, its operands, and the inlined calls to it from the outermost one on."""
    place, what, lhs, rhs, address = line
    command = ["addr2line", "-i", "-s", "-e", str(library), hex(int(address, 16) - 1)]
    calls = subprocess.run(command, capture_output=True, text=True).stdout.split("\n")
    calls = [call.split(" ")[0] for call in calls if call]
    operands = [value - 2**64 if (value := int(each, 16)) >= 2**63 else value for each in (lhs, rhs)]
    narrow = [value - 2**32 if 2**31 <= value < 2**32 else value for value in operands]
    where = " < ".join(dict.fromkeys([re.sub(r".*/(tl/|)", "", place), *calls]))
    return f"{what.removesuffix('_overflow')} of {narrow[0]} and {narrow[1]} at {where}"


HUGE = (2**31 - 1, 2**31 - 8, 2**31 - 64, 2**31 - 256, 2**31 - 4096, 2**30 + 2**29, 2**30, 2**24)
LARGE = (46344, 65536, 2**20)  # whose products with themselves exceed 2**31 and 2**32
SMALL = (256, 8)


def empty(names: Sequence[str]) -> Iterator[list[dict[str, int]]]:
    """Sizes of 0: all of them, and each alone."""
    yield [dict.fromkeys(names, 0)]
    yield from ([dict.fromkeys(names, 256) | {name: 0}] for name in names)


def patterns(names: Sequence[str]) -> Iterator[list[dict[str, int]]]:
    """Groups of sizes, each from the most extreme ones on. Of each the first ones that the launcher accepts run."""
    yield from empty(names)
    for name, small in itertools.product(names, SMALL):
        yield [dict.fromkeys(names, small) | {name: huge} for huge in HUGE]
    for one, other in itertools.permutations(names, 2):
        for large in (46344, 8192):
            yield [dict.fromkeys(names, 8) | {one: huge, other: large} for huge in HUGE]
    for one, other in itertools.combinations(names, 2):
        yield [dict.fromkeys(names, 8) | {one: large, other: large} for large in LARGE[::-1]]
    yield [dict.fromkeys(names, large) for large in LARGE[::-1]]


def audit(
    source: Path,
    *,
    tables: Mapping[str, Table] | None = None,
    scalars: Mapping[str, float] | None = None,
    seconds: int = 4,
    each: int = 1,
    groups: Callable[[Sequence[str]], Iterator[list[dict[str, int]]]] = patterns,
) -> list[Outcome]:
    """The runs of an emitted source that its launcher accepted: of each pattern the `each` most extreme ones."""
    manifest, library = read_manifest(source.with_suffix(".json")), library_of(source)
    outcomes: dict[tuple[int, ...], Outcome] = {}
    for group in groups([size.name for size in manifest.sizes]):
        accepted = 0
        for sizes in group:
            key = tuple(sizes.values())
            if key not in outcomes and sum(bytes_of(tensor, sizes) for tensor in manifest.tensors) <= _MOST_BYTES:
                late = sum(each.status is None for each in outcomes.values())
                given = seconds if late < _CUT else 1
                found = run(library, manifest, sizes, scalars=scalars, tables=tables or TABLES, seconds=given)
                if found.status == _LAUNCH_FAILED and '"deadlock"' in found.report:  # loops that end apart
                    other = library_of(source, absolute=True)
                    again = run(other, manifest, sizes, scalars=scalars, tables=tables or TABLES, seconds=given)
                    found = replace(found, status=None, overflows=(*found.overflows, *again.overflows))
                outcomes[key] = found
            accepted += key in outcomes and outcomes[key].accepted
            if accepted == each:
                break
    return [each for each in outcomes.values() if each.accepted]


def _ascending(name: str) -> Table:
    """Offsets of sequences: the first one has all rows, `name` of them, or as many as the largest size."""
    return lambda sizes, count: [0] + [sizes.get(name, max(sizes.values(), default=0))] * min(count - 1, 4096)


def _lengths(sizes: Mapping[str, int], count: int) -> list[int]:
    """As many tokens as a cache has, or an int; none without pages."""
    return [sizes.get("max_len", 2**31 - 1 if sizes.get("pages", 1) else 0)] * min(count, 4096)


# What the examples' tables of ints have in valid calls: they are ascending, lengths, or indices of elements that exist.
# Other numbers are tests/host/test_wrapping.py's.
TABLES: Mapping[str, Table] = {
    "cu_seqlens": _ascending("tokens"),
    "cu_seqlens_k": _ascending("tokens_k"),
    "Offsets": _ascending("tokens"),
    "lengths": _lengths,
    "Labels": lambda sizes, count: [sizes.get("vocab", 1) - 1] * min(count, 4096),
    "block_table": lambda sizes, count: [sizes.get("pages", 1) - 1] * min(count, 1 << 20),
    "Kept": lambda sizes, count: [1] * min(count, 1 << 20),
}


def sources_of(path: Path, target: str, folder: Path) -> Iterator[Path]:
    """The source itself, or what a kernel's file emits for a target."""
    if path.suffix != ".py":
        yield path
        return
    import tile2cu

    for kernel, emitted in tile2cu.emit(path, target=target).items():
        place = folder / path.stem / kernel
        place.mkdir(parents=True)
        for name, text in emitted.files.items():
            (place / name).write_text(text, encoding="utf-8")
        yield from (place / name for name in emitted.files if name.endswith((".cu", ".hip")))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--target", default="hip:gfx942")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--each", type=int, default=1)
    parser.add_argument("--empty", dest="groups", action="store_const", const=empty, default=patterns)
    given = parser.parse_args()
    faulty = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in given.files:
            for source in sources_of(path, given.target, Path(folder)):
                outcomes = audit(source, seconds=given.seconds, each=given.each, groups=given.groups)
                faults: dict[str, list[Outcome]] = {}
                for outcome in outcomes:
                    for fault in outcome.faults:
                        faults.setdefault(re.sub(r" of -?\d+ and -?\d+", "", fault), []).append(outcome)
                faulty += bool(faults)
                late = sum(outcome.status is None for outcome in outcomes)
                print(f"{source}: {len(outcomes)} runs, {late} cut, {len(faults)} faults", flush=True)
                for where, found in faults.items():
                    print(f"  {where}\n    e.g. {dict(found[0].sizes)}; {len(found)} runs: {found[0].faults[0][:300]}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
