"""The path of a kernel: text, Program, facts, text."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tile2cu import fit
from tile2cu.api_words import speaks_python
from tile2cu.core.choice import Choice, Unchosen, rule_of
from tile2cu.core.decisions import SHARED_BUDGET, TILES
from tile2cu.core.dispatch import Dispatch
from tile2cu.core.errors import Tile2CuError, require_one_kernel
from tile2cu.core.facts import Fact
from tile2cu.core.origin import STYLES, EmitOptions, Tool
from tile2cu.core.program import Launch, Program
from tile2cu.core.shared_memory import TooLarge
from tile2cu.emitter import Emitted, Resolved, emit_kernel, seen_by, with_namespaces
from tile2cu.files import read_python, relative_to
from tile2cu.frontend import kernel_names, programs
from tile2cu.lint import warnings_of
from tile2cu.plan.named_values import with_named_values
from tile2cu.rules import RULES, Context, resolve
from tile2cu.targets import Target, find
from tile2cu.tool import this_tool
from tile2cu.uncollected import uncollected

if TYPE_CHECKING:
    from tile2cu.frontend.live import Live

_UNKNOWN_BINDING = "T2C-F005"
Tiles = str | Choice  # "auto", "default", or what was chosen


@speaks_python
def emit(
    path: str | Path, kernel: str | None = None, *, target: str = "cuda:sm_80", style: str = "tl", **bindings: object
) -> dict[str, Emitted]:
    """Transpiles a file and returns its kernels' files as text, by kernel name; writes nothing.

    `kernel` picks one; `bindings` are values for the arguments of its factory; `style` is one of STYLES.
    Raises Tile2CuError.
    """
    options = EmitOptions(style=checked_style(style))
    found = emit_text(Path(path), kernel=kernel, target=find(target), bindings=bindings, options=options)
    return {one.kernel: one for one in found}


def checked_style(style: str) -> str:
    """The name of a style. Errors: T2C-C012 where there is none of that name."""
    if style not in STYLES:
        raise Tile2CuError("T2C-C012", f"there is no style `{style}`", help=f"there are {', '.join(STYLES)}")
    return style


@uncollected()
def emit_text(
    path: Path,
    *,
    kernel: str | None,
    target: Target,
    bindings: Mapping[str, object],
    text: str | None = None,
    options: EmitOptions | None = None,
    tool: Tool | None = None,
    live: "Live | None" = None,
    choice: Choice | None = None,
) -> tuple[Emitted, ...]:
    """The files of every kernel of a source file, or of the one named, in file order.

    `text` is the source where it is not read from `path`; `tool` is what the files name as their writer;
    `live` is a call of a running program; `choice` are tiles that were chosen.
    """
    found, options = resolved_text(
        path, kernel=kernel, target=target, bindings=bindings, text=text, options=options, live=live, choice=choice
    )
    return tuple(emitted(resolved, options, tool) for resolved in found)


def resolved_text(
    path: Path,
    *,
    kernel: str | None,
    target: Target,
    bindings: Mapping[str, object],
    text: str | None = None,
    options: EmitOptions | None = None,
    live: "Live | None" = None,
    choice: Choice | None = None,
) -> tuple[list[tuple[Resolved, ...]], EmitOptions]:
    """The kernels that `emit_text` writes, before they are written, and the options that it writes them with."""
    options = options or EmitOptions()
    tiles: Tiles = options.tiles if choice is None else choice
    if options.family:
        path, kernel, options, tiles = _of_family(path, kernel, target, bindings, options)
        text = None
    found = resolved_kernels(
        path,
        kernel=kernel,
        target=seen_by(options.style, target),
        bindings=bindings,
        text=text,
        name=options.name,
        tiles=tiles,
        live=live,
    )
    return found, options


def _of_family(
    path: Path, kernel: str | None, target: Target, bindings: Mapping[str, object], options: EmitOptions
) -> tuple[Path, str | None, EmitOptions, Tiles]:
    """The member of a family whose kernel is fastest, with what is chosen of it and the times of the others.

    The C function has the name of the first. Errors: those of `family_of`.
    """
    from tile2cu.choosing import family_of, fastest, predicted_times

    members = family_of(path, kernel, target, bindings, options.family)
    place, choice = fastest(members, {})
    chosen, others = members[place], [each for number, each in enumerate(members) if number != place]
    options = replace(
        options,
        name=options.name or members[0].program.name,
        tiles="auto",
        family=tuple(relative_to(each.path, chosen.path) for each in others),
    )
    tiles: Tiles = "auto" if choice is None else replace(choice, others=predicted_times(others, {}))
    return chosen.path, kernel if place == 0 else None, options, tiles


def emitted(resolved: tuple[Resolved, ...], options: EmitOptions, tool: Tool | None = None) -> Emitted:
    """A kernel's files, and the warnings about it."""
    written = emit_kernel(resolved, tool=tool or this_tool(), options=options)
    return replace(written, warnings=warnings_of(resolved, written.source))


@speaks_python
def dispatch(
    wanted: Dispatch, folder: str | Path = ".", *, options: EmitOptions | None = None, tool: Tool | None = None
) -> dict[str, str]:
    """The files of several specialisations of a kernel under one C entry, by name; writes nothing.

    `folder` is where the entries' Python files are looked for. Raises Tile2CuError: T2C-E020 to E023 when the entries
    do not make one function.
    """
    from tile2cu.emitter.dispatch import emit_dispatch

    tool = tool or this_tool()
    kernels: list[tuple[Resolved, ...]] = []
    files: dict[str, str] = {}
    for entry in wanted.entries:
        file, kernel = wanted.source(entry)
        own = replace(options or EmitOptions(), name=f"{wanted.name}_{entry.name}")
        kernels += resolved_kernels(
            Path(folder) / file, kernel=kernel, target=find(entry.target), bindings=entry.bindings, name=own.name
        )
        files |= emit_kernel(kernels[-1], tool=tool, options=own).files
    return files | emit_dispatch(wanted, kernels, tool=tool, options=options or EmitOptions())


def errors_of(path: Path, first: Tile2CuError, *, target: Target, bindings: Mapping[str, object]) -> list[Tile2CuError]:
    """The errors of all kernels of a file whose `first` error is known, each once, in the order of the file.

    A -D that another kernel of the file takes is none.
    """
    found = {first.render(): first}
    try:
        names = kernel_names(read_python(path), path)
    except Tile2CuError:
        return [first]
    for name in names:
        try:
            resolved_kernels(path, kernel=name, target=target, bindings=bindings)
        except Tile2CuError as error:
            if error.code != _UNKNOWN_BINDING:
                found.setdefault(error.render(), error)
    return list(found.values())


@uncollected()
def resolved_kernels(
    path: Path,
    *,
    kernel: str | None,
    target: Target,
    bindings: Mapping[str, object],
    text: str | None = None,
    name: str = "",
    tiles: Tiles = "default",
    live: "Live | None" = None,
    read: Callable[[str], str | None] | None = None,
) -> list[tuple[Resolved, ...]]:
    """The kernels of a source file, or the one named, with all that is decided about each of their launches.

    `name` is the C function's, for a file of one kernel: else it is that of the kernel's outermost function. With
    `tiles` "auto" the model chooses the values of tile parameters that have none among the bindings. `read` gives the
    text of imported files where they are not read from the disk.
    """
    from tile2cu.frontend.reading import Reading

    source = read_python(path) if text is None else text
    reading = Reading(path, source, bindings=bindings, target=target, live=live, read=read)
    found = reading.programs(kernel)
    if name:
        require_one_kernel([program.name for program in found])
    if tiles != "default":
        found = tuple(_with_chosen_tiles(path, source, each, target, bindings, tiles) for each in found)
    kernels = [_resolved(each, target, name, partial(reading.programs, each.alias_of or each.name)) for each in found]
    # A running program's call gives the parameters: there is no command line whose values could be others.
    return kernels if live is None else [tuple(replace(each, decide=None) for each in kernel) for kernel in kernels]


def _with_chosen_tiles(
    path: Path, source: str, program: Program, target: Target, bindings: Mapping[str, object], tiles: Tiles
) -> Program:
    """The program with the tiles that were chosen, or that the model chooses. Errors: T2C-C020 where sizes are open."""
    from tile2cu.chooser.choose import NoModel
    from tile2cu.choosing import tunable

    name = program.alias_of or program.name
    if program.sizes:
        sizes = ", ".join(size.name for size in program.sizes)
        help = "give each with -D, as -D " + " -D ".join(f"{size.name}=4096" for size in program.sizes)
        raise Tile2CuError(
            "T2C-C020", f"tiles are chosen for sizes, and {sizes} have no value", program.span, help=help
        )
    try:
        choice = tiles if isinstance(tiles, Choice) else tunable(path, source, name, target, bindings).choice({})
    except NoModel as error:
        return replace(program, choice=Unchosen(because=str(error)))
    chosen = programs(path, source, kernel=name, bindings={**bindings, **dict(choice.setting)}, target=target)[0]
    return replace(chosen, bindings=program.bindings, choice=choice)


def one_resolved_kernel(
    path: Path,
    kernel: str | None,
    *,
    target: Target,
    bindings: Mapping[str, object],
    text: str | None = None,
    tiles: Tiles = "default",
) -> tuple[Resolved, ...]:
    """All that is decided about each launch of a file's only kernel, or of the one named.

    Errors: T2C-C004 where the file has several.
    """
    found = resolved_kernels(path, kernel=kernel, target=target, bindings=bindings, text=text, tiles=tiles)
    require_one_kernel([launches[0].program.name for launches in found])
    return with_namespaces(found[0])


def emit_program(
    program: Program, target: Target, *, options: EmitOptions | None = None, tool: Tool | None = None
) -> Emitted:
    """The files of one kernel. Errors: Tile2CuError where a rule or the emitter rejects it."""
    launches = tuple(_launch(program, target, each) for each in resolve_launches(program, target))
    return emit_kernel(launches, tool=tool or this_tool(), options=options or EmitOptions())


def resolve_launches(program: Program, target: Target) -> tuple[Context, ...]:
    """Everything that is decided about a program, launch by launch, with fewer stages where only those fit."""
    return tuple(_resolved_launch(program, launch, target) for launch in program.launches)


def _resolved_launch(program: Program, launch: Launch, target: Target) -> Context:
    try:
        return resolve(program, launch, target, RULES)
    except TooLarge:
        for fewer in fit.with_fewer_stages(launch):
            with suppress(Tile2CuError):
                return resolve(program, fewer, target, RULES)
        raise


def _resolved(program: Program, target: Target, name: str, retrace: fit.Retrace) -> tuple[Resolved, ...]:
    try:
        contexts = resolve_launches(program, target)
    except TooLarge as error:
        bytes_of = partial(_shared_bytes, target)
        raise fit.with_help(error, program, target.shared_limit, retrace, bytes_of) from None
    if name and name != program.name:
        program = replace(program, name=name, alias_of=program.alias_of or program.name)
    chosen = dict(program.choice.setting) if isinstance(program.choice, Choice) else {}
    decide = partial(_decided, retrace, target, chosen)
    return tuple(replace(_launch(program, target, each), decide=decide) for each in contexts)


def _decided(
    retrace: fit.Retrace, target: Target, chosen: Mapping[str, int], values: Mapping[str, int]
) -> tuple[Resolved, ...]:
    """What is decided about a kernel with other values of parameters than those given or `chosen`."""
    program, *_ = retrace({**chosen, **values})
    return tuple(_launch(program, target, each) for each in resolve_launches(program, target))


def _launch(program: Program, target: Target, decided: Context) -> Resolved:
    if program.choice is not None:
        span = decided.launch.span
        decided.facts.add(Fact(decided.launch, TILES, program.choice, rule_of(program.choice), span))
    return with_named_values(Resolved(program, decided.launch, target, decided.facts, decided.bounds))


def _shared_bytes(target: Target, program: Program) -> int:
    """What the hungriest of a program's launches takes. Raises T2C-L020 when that is too much."""
    resolved = (resolve(program, launch, target, RULES) for launch in program.launches)
    return max(int(each.facts[each.launch, SHARED_BUDGET].total) for each in resolved)
