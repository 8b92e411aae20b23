"""`tile2cu review kernel.py -o review.html`: a kernel, its decisions and their reasons as one page."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.cli.request import (
    DEFAULT_TARGET,
    add_auto,
    add_bindings,
    add_sizes,
    bindings,
    sizes,
    whole_sizes,
)
from tile2cu.core.origin import STYLES, EmitOptions

_MISSING_SIZE = "T2C-R105"

if TYPE_CHECKING:
    from tile2cu.review.compare import Comparison
    from tile2cu.review.execution import Execution
    from tile2cu.review.kernel import Kernel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="the Python file")
    parser.add_argument("-o", "--output", default=Path("review.html"), metavar="FILE", type=Path, help="review.html")
    help = f"a target; several have a tab each; by default {DEFAULT_TARGET}"
    parser.add_argument("--target", dest="targets", action="append", default=[], metavar="TARGET", help=help)
    parser.add_argument("--kernel", help="the kernel, by its outermost function; all if not given")
    help = f"what the kernels are written in; several have a tab each; by default {EmitOptions().style}"
    parser.add_argument("--style", dest="styles", action="append", choices=STYLES, default=[], help=help)
    add_bindings(parser)
    add_auto(parser)
    add_sizes(parser, "a size of the call: with those of the grid, its waves are counted")
    help = "a git revision of the file: what changed since then has a tab of its own"
    parser.add_argument("--against", metavar="REV", help=help)
    help = "another target: what differs from it has a tab of its own"
    parser.add_argument("--against-target", metavar="TARGET", help=help)
    help = "run the kernels on the CPU engine with the sizes: findings of all checks, and accesses by Python line"
    parser.add_argument("--run", action="store_true", help=help)
    parser.add_argument("--no-compile", action="store_true", help="leave out what needs a compiler: registers, spills")


def run(options: argparse.Namespace) -> int:
    """Writes the page. Errors: T2C-C005 when it cannot be written, T2C-C015 of git, and those of transpiling."""
    from tile2cu.files import write_files
    from tile2cu.review.page import page

    targets = list(dict.fromkeys(options.targets)) or [DEFAULT_TARGET]
    asked = [*targets, *(name for name in (options.against_target,) if name not in (None, *targets))]
    style, *others = list(dict.fromkeys(options.styles)) or [EmitOptions().style]
    several = (len(asked) > 1, bool(others))
    found = {target: _kernels(options, target, style, several) for target in asked}
    shown = [each for of_target in found.values() for each in of_target]
    for other in others:
        shown += [each for target in targets for each in _kernels(options, target, other, several)]
    comparisons = [*_since(options, found, targets), *_other_target(options, found, targets)]
    write_files({options.output.name: page(shown, comparisons=comparisons)}, options.output.parent)
    return 0


def _since(options: argparse.Namespace, found: "dict[str, list[Kernel]]", targets: list[str]) -> "Iterator[Comparison]":
    """What changed since a revision; a kernel that is new has no comparison."""
    if options.against is None:
        return
    from tile2cu.project.memory import text_at
    from tile2cu.review.compare import compared

    text_at(options.file, options.against)  # the file must be there
    for target in targets:
        style = next(iter(options.styles), EmitOptions().style)
        before_now = _kernels(options, target, style, (False, False), options.against)
        old = {each.manifest["kernel"]: each for each in before_now}
        for new in found[target]:
            before = old.get(new.manifest["kernel"])
            if before is not None:
                label = f"{new.label} since {options.against}"
                yield compared(before, new, label=label, before=options.against, after="now")


def _other_target(
    options: argparse.Namespace, found: "dict[str, list[Kernel]]", targets: list[str]
) -> "Iterator[Comparison]":
    """What differs from another target."""
    from tile2cu.review.compare import compared

    other = options.against_target
    for target in (target for target in targets if other not in (None, target)):
        for before, new in zip(found[other], found[target], strict=True):
            name = f"{new.manifest['kernel']}: " if len(found[target]) > 1 else ""
            label = f"{name}{target} against {other}"
            yield compared(before, new, label=label, before=other, after=target)


def _kernels(
    options: argparse.Namespace, target: str, style: str, several: tuple[bool, bool], revision: str | None = None
) -> "list[Kernel]":
    """The kernels of the file for a target; as they were in a git revision, if given.

    `several`: whether the page has several targets, and several styles.
    """
    from tile2cu.api import resolved_kernels
    from tile2cu.emitter import with_namespaces
    from tile2cu.project.memory import reader_at, text_at
    from tile2cu.review.kernel import reviewed
    from tile2cu.targets import find
    from tile2cu.tool import this_tool

    given, wanted = bindings(options), EmitOptions(style=style)
    found = resolved_kernels(
        options.file,
        kernel=options.kernel,
        target=find(target),
        bindings=given,
        text=text_at(options.file, revision) if revision is not None else None,
        tiles=options.tiles,
        read=reader_at(options.file, revision) if revision is not None else None,
    )
    made = (
        reviewed(
            with_namespaces(each),
            label=_label(each[0].program.name, target, style, (len(found) > 1, *several)),
            tool=this_tool(),
            options=wanted,
        )
        for each in found
    )
    return [_examined(options, each, style, now=revision is None) for each in made]


def _examined(options: argparse.Namespace, kernel: "Kernel", style: str, *, now: bool) -> "Kernel":
    """The kernel with what compilers, the cost model and a run state about it; of the file as it is `now`, or was."""
    from msgspec.structs import replace

    kernel = kernel if options.no_compile else _compiled(kernel, whole_sizes(options))
    if not now:
        return kernel
    run = _execution(options, kernel, style) if options.run else None
    return replace(_with_bound(options, kernel), run=run)


def _with_bound(options: argparse.Namespace, kernel: "Kernel") -> "Kernel":
    """The kernel with what bounds a call, where all its sizes are known, and with the results of `tile2cu tune`."""
    from msgspec.structs import replace

    from tile2cu.choosing import tunable
    from tile2cu.files import read_python
    from tile2cu.review.bound import bound_of
    from tile2cu.tuning.record import place_of, read
    from tile2cu_runtime.errors import ArgumentError
    from tile2cu_runtime.spec import parse_manifest
    from tile2cu_runtime.trial import call_numbers

    program, target = kernel.launches[0].program, kernel.launches[0].target
    name, manifest = program.alias_of or program.name, parse_manifest(kernel.manifest)
    tuned = read(place_of(options.file, program.name))
    try:
        numbers = call_numbers(manifest, sizes(options), {})
    except ArgumentError as error:
        if error.code != _MISSING_SIZE:
            raise
        return replace(kernel, tuned=tuned)
    made = tunable(options.file, read_python(options.file), name, target, bindings(options))
    whole = {each: value for each, value in numbers.items() if isinstance(value, int)}
    return replace(kernel, tuned=tuned, bound=bound_of(made, program, manifest, numbers, whole))


def _label(kernel: str, target: str, style: str, several: tuple[bool, bool, bool]) -> str:
    """What distinguishes a kernel from the others of the page."""
    named = [name for name, differs in zip((kernel, target, style), several, strict=True) if differs]
    return ", ".join(named) or kernel


def _execution(options: argparse.Namespace, kernel: "Kernel", style: str) -> "Execution | None":
    """A run on the CPU engine with the sizes; None in a style that g++ cannot compile. Errors: those of a run."""
    from tile2cu.core.errors import Tile2CuError
    from tile2cu.loading import load
    from tile2cu.review.execution import executed
    from tile2cu_runtime.errors import DeviceError
    from tile2cu_runtime.trial import call_numbers, made_up_tensors, try_kernel

    program, target = kernel.launches[0].program, kernel.launches[0].target.name
    how = {"statistics": True, "on_finding": "report", "schedules": ("round-robin", "reverse")}
    name, given = program.alias_of or program.name, bindings(options)
    try:
        own = {"target": target, "style": style, "device": "cpu", "check": True, "options": how}
        loaded = load(options.file, name, tiles=options.tiles, **own, **given)
    except DeviceError:
        return None
    numbers = call_numbers(loaded.manifest, sizes(options), {})
    try_kernel(loaded, made_up_tensors(loaded.manifest, numbers, 0), numbers)
    if loaded.report is None:
        raise Tile2CuError("T2C-C002", "the run has no report")
    return executed(loaded.report, numbers)


def _compiled(kernel: "Kernel", given: dict[str, int]) -> "Kernel":
    """The kernel with the report of `tile2cu resources`; where the compiler is missing or fails, why. Errors: T2C-R100
    to R105 for sizes that the kernel does not have, or lacks.
    """
    from tempfile import TemporaryDirectory

    from msgspec.structs import replace

    from tile2cu.files import write_files
    from tile2cu_runtime import resources
    from tile2cu_runtime.errors import CompileError
    from tile2cu_runtime.spec import parse_manifest

    with TemporaryDirectory() as folder:
        write_files(dict(kernel.files), Path(folder))
        try:
            found = resources.inspect(parse_manifest(kernel.manifest), Path(folder), given)
        except CompileError as error:
            return replace(kernel, not_compiled=f"not compiled: {error}")
    return replace(kernel, compiled=found)
