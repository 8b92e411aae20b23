"""`tile2cu tune`: measures settings of a kernel's tile parameters on a GPU, and keeps what won in a file next to it."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from tile2cu.cli.request import add_source, bindings
from tile2cu.core.choice import Setting, named
from tile2cu.core.errors import Tile2CuError

_BEGIN, _END = "# tile2cu tune: begin {name}", "# tile2cu tune: end {name}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument(
        "--size",
        dest="sizes",
        action="append",
        default=[],
        metavar="NAME=VALUE[,VALUE...]",
        help="values of a run-time size; all combinations of all sizes are tuned",
    )
    parser.add_argument("--limit", type=int, default=16, metavar="N", help="settings to measure for a shape (16)")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for a shape, builds included (60)")
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
    from tile2cu.choosing import tunable
    from tile2cu.files import read_python
    from tile2cu.targets import find
    from tile2cu.tuning.record import place_of
    from tile2cu.tuning.run import Limits, tune_shapes
    from tile2cu.tuning.store import Store
    from tile2cu_runtime.paths import cache_dir

    given: dict[str, Any] = bindings(options)
    kernel = tunable(options.file, read_python(options.file), options.kernel, find(options.target), given)
    program = kernel.program
    shapes = _shapes(options.sizes, [size.name for size in program.sizes])
    if options.limit < 2:
        raise Tile2CuError("T2C-C002", f"`--limit {options.limit}` leaves nothing to compare", help="--limit 16")
    place = place_of(options.file, program.name)
    with _progress(len(shapes)) as step:
        found = tune_shapes(
            kernel,
            shapes,
            lambda default, sizes: _on_gpu(options, given, default, sizes),
            place=place,
            store=Store(cache_dir() / "tuned.sqlite3"),
            limits=Limits(measurements=options.limit, seconds=options.seconds, again=options.again),
            step=step,
        )
    for entry in found.entries:
        sizes = ", ".join(f"{name} = {value}" for name, value in entry.sizes)
        gain = entry.default_us / entry.best.us
        print(f"{sizes}: {named(entry.best.setting)}; {entry.best.us:.1f} us, {gain:.2f} x the file's own ({entry.by})")
    print(place)
    if options.dispatch:
        _write_dispatch(options, kernel, found)
    return 0


def _on_gpu(options: argparse.Namespace, given: Mapping[str, Any], default: Setting, sizes: Mapping[str, int]) -> Any:
    from tile2cu.loading import load
    from tile2cu.tuning.on_gpu import OnGpu

    def kernel_of(setting: Mapping[str, int]) -> Any:
        all_given: dict[str, Any] = {**given, **setting}
        return load(
            options.file,
            options.kernel,
            target=options.target,
            style=options.style,
            device="hip" if options.target.startswith("hip") else "cuda",
            tiles="default",
            **all_given,
        )

    return OnGpu(kernel_of, default, sizes)


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


def _write_dispatch(options: argparse.Namespace, kernel: Any, found: Any) -> None:
    from tile2cu.tuning.cover import as_toml, cover, entries_of

    along = options.along or kernel.program.sizes[0].name
    entries = entries_of(cover(found.entries), found.entries, found.target, along, kernel.predicted)
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
