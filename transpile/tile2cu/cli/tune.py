"""`tile2cu tune`: measures settings of a kernel's tile parameters on a GPU, and keeps what won in a file next to it."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tile2cu.cli.request import add_family, add_sizes, add_source, bindings
from tile2cu.core.choice import Candidate, named
from tile2cu.core.errors import Tile2CuError

_BEGIN, _END = "# tile2cu tune: begin {name}", "# tile2cu tune: end {name}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_family(parser, "are measured, too")
    add_sizes(parser, "values of a run-time size; all combinations of all sizes are tuned", "NAME=VALUE[,VALUE...]")
    parser.add_argument("--limit", type=int, default=16, metavar="N", help="settings to measure for a shape (16)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for a shape, builds included (60)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--gpus", default="1", metavar="N", help="GPUs of this host that share the shapes; all: every one (1)"
    )
    where.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="share the shapes among the GPUs of a Ray cluster: HOST:PORT, auto (this host's), or local (start one)",
    )
    parser.add_argument("--again", action="store_true", help="measure shapes that have a result, too")
    parser.add_argument(
        "--dispatch",
        metavar="FILE",
        help="write a [[tool.tile2cu.dispatch]] of at most 8 settings into this TOML file; - prints it",
    )
    parser.add_argument(
        "--along", default="", metavar="NAME", help="the size whose ranges the dispatch is over; the first"
    )


def run(options: argparse.Namespace) -> int:
    from tile2cu.choosing import family_of
    from tile2cu.targets import find
    from tile2cu.tuning.record import place_of
    from tile2cu.tuning.run import Limits, tune_shapes
    from tile2cu.tuning.store import Store
    from tile2cu_runtime.paths import cache_dir

    family = family_of(options.file, options.kernel, find(options.target), bindings(options), options.family)
    kernel = family[0]
    program = kernel.program
    shapes = _shapes(options.sizes, [size.name for size in program.sizes])
    if options.limit < 2:
        raise Tile2CuError("T2C-C002", f"`--limit {options.limit}` leaves nothing to compare", help="--limit 16")
    place = place_of(options.file, program.name)
    with _workers(options) as workers, _progress(len(shapes)) as step:
        found = tune_shapes(
            family,
            shapes,
            _device(),
            place=place,
            style=options.style,
            workers=workers,
            store=Store(cache_dir() / "tuned.sqlite3"),
            limits=Limits(measurements=options.limit, seconds=options.seconds, again=options.again),
            step=step,
        )
    found = replace(found, entries=tuple(each for each in found.entries if each.bindings == kernel.others))
    for entry in found.entries:
        sizes = ", ".join(f"{name} = {value}" for name, value in entry.sizes)
        gain = entry.default_us / entry.best.us
        best = entry.best.candidate if len(family) > 1 else named(entry.best.setting)
        print(f"{sizes}: {best}; {entry.best.us:.1f} us, {gain:.2f} x the file's own ({entry.by})")
    print(place)
    if options.dispatch:
        _write_dispatch(options, family, found)
    return 0


def _device() -> Any:
    """What workers measure on."""
    from tile2cu.tuning.on_gpu import Gpu

    return Gpu()


def _workers(options: argparse.Namespace) -> Any:
    """The workers that the options ask for. Raises T2C-C002 for a wrong number of GPUs, T2C-C024 and T2C-C019."""
    from tile2cu.tuning.on_ray import on_ray
    from tile2cu.tuning.workers import on_this_host

    if options.ray:
        return on_ray(options.ray)
    if options.gpus != "all" and not (options.gpus.isdecimal() and int(options.gpus)):
        raise Tile2CuError("T2C-C002", f"`--gpus {options.gpus}` is no number of GPUs", help="--gpus 2, or --gpus all")
    return on_this_host(None if options.gpus == "all" else int(options.gpus))


def _shapes(texts: list[str], open_sizes: list[str]) -> list[dict[str, int]]:
    """All combinations of the sizes' values. Raises T2C-C002 for a size that is none, or has no value."""
    values: dict[str, list[int]] = {}
    for text in texts:
        name, _, listed = text.partition("=")
        try:
            values[name] = [int(each) for each in listed.split(",")]
        except ValueError:
            help = "write for instance --size M=1,16,4096"
            raise Tile2CuError("T2C-C002", f"`--size {text}` is not of the form NAME=NUMBER,...", help=help) from None
    for name in values:
        if name not in open_sizes:
            listed = ", ".join(open_sizes) or "none"
            raise Tile2CuError(
                "T2C-C002", f"`--size {name}`: the kernel has no such run-time size", help=f"it has {listed}"
            )
    if missing := [name for name in open_sizes if name not in values]:
        help = " ".join(f"--size {name}=4096" for name in missing)
        raise Tile2CuError("T2C-C002", f"{', '.join(missing)} have no values to tune for", help=help)
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


@contextmanager
def _progress(shapes: int) -> Iterator[Any]:
    """A bar on the standard error, one step a shape."""
    from tqdm import tqdm

    with tqdm(total=shapes, unit="shape", leave=False, file=sys.stderr) as bar:

        def step(sizes: Any, done: Any, what: str) -> None:
            bar.set_postfix_str(" ".join(f"{name}={value}" for name, value in sizes) + f": {what}")
            if done is not None:
                bar.update()

        yield step


def _write_dispatch(options: argparse.Namespace, family: Any, found: Any) -> None:
    from tile2cu.tuning.cover import as_toml, cover, entries_of
    from tile2cu.tuning.run import names_of

    files = names_of(family)

    def predicted(candidate: Candidate, sizes: Any) -> float | None:
        us: float | None = files[candidate.file].predicted(candidate.setting, sizes)
        return us

    if unlike := [name for name, value in family[0].bindings if not isinstance(value, str | int | float)]:
        help = f"-D {unlike[0]} with a number or a text; or write the entry without it"
        raise Tile2CuError("T2C-C002", f"TOML has no value for `{unlike[0]}`", help=help)
    along = options.along or family[0].program.sizes[0].name
    kernels = {file: each.program.alias_of or each.program.name for file, each in files.items()}
    entries = entries_of(cover(found.entries), found.entries, found.target, along, predicted, kernels)
    text = as_toml(f"{found.kernel}_tuned", options.file.name, found.kernel, entries)
    if options.dispatch == "-":
        print(text, end="")
        return
    write_between(Path(options.dispatch), f"{found.kernel}_tuned", text)


def write_between(path: Path, name: str, text: str) -> None:
    """Writes a text into a file: in the place of the one written before under this name, or at its end."""
    from tile2cu.files import read, write_files

    begin, end = _BEGIN.format(name=name), _END.format(name=name)
    there = read(path) if path.exists() else ""
    block = f"{begin}\n{text}{end}\n"
    head, found, rest = there.partition(f"{begin}\n")
    if found:
        _, _, tail = rest.partition(f"{end}\n")
        content = head + block + tail
    else:
        content = there + ("\n" if there and not there.endswith("\n\n") else "") + block
    write_files({path.name: content}, path.parent)
