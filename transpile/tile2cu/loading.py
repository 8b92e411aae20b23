"""From a tile-language file to a Python callable: emit, build, load."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, overload

from tile2cu.analysis.work import mma_flops
from tile2cu.api import Tiles, checked_style, emit_text, one_resolved_kernel, resolved_kernels
from tile2cu.api_words import speaks_python
from tile2cu.by_size import KernelBySize
from tile2cu.choosing import family_of, fastest, implied_tiles
from tile2cu.core.choice import Choice
from tile2cu.core.decisions import TILES
from tile2cu.core.errors import Tile2CuError, require_one_kernel
from tile2cu.core.origin import EmitOptions
from tile2cu.emitter import Resolved, emit_kernel, with_namespaces
from tile2cu.files import read_python, write_files
from tile2cu.from_function import Origin, origin
from tile2cu.frontend.live import Live, as_argument
from tile2cu.project.on_disk import manifests, read_manifest, source_sha256
from tile2cu.review.layouts import Layouts, layouts_of
from tile2cu.targets import SM80, Target, find
from tile2cu.tool import this_tool
from tile2cu_runtime import cache
from tile2cu_runtime.device import auto_target
from tile2cu_runtime.load import Kernel, load_kernel

EMITTED = (".json", ".cu", ".hip")  # the suffixes of files by which an emitted kernel can be named


@overload
def load(
    path: str | Path | Any, kernel: str | None = None, *, tiles: Literal["auto"], **options: Any
) -> Kernel | KernelBySize: ...
@overload
def load(
    path: str | Path | Any,
    kernel: str | None = None,
    *,
    tiles: Literal["default"] | None = None,
    **options: Any,
) -> Kernel: ...
@speaks_python
def load(
    path: str | Path | Any,
    kernel: str | None = None,
    *,
    target: str = "cuda:sm_80",
    style: str = "tl",
    device: str | None = None,
    check: bool = False,
    tiles: str | None = None,
    family: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    **bindings: Any,
) -> Kernel | KernelBySize:
    """Transpiles a file, builds the text and returns its kernel as a callable.

    `path` may be the kernel's function itself, as in a notebook: its text is read, it is not called. `kernel` picks one
    of several; `bindings` are values for the arguments of its factory. `target` is a target's name or "auto"; `style`
    what it is written in, "tl", "cute" or "ck". `device` is "cpu" (the engine), "cuda", "hip", "sim" (AMD's code
    object, simulated), "ptx" (nvcc's PTX, simulated), or None for what this machine has. `check` runs on the engine or
    the simulator with every check on. `options` go to tile2cu_runtime.load_kernel: schedules, statistics and the like.
    The emitted files are kept in `.folder`, in the build cache.

    With `tiles` "auto" a model of the GPU chooses the values of tile parameters that have none: for the sizes among
    the bindings, or, where some are open, for those of each call (KernelBySize). "default" keeps the file's values.
    None is "auto" where all sizes and no number with a default are among the bindings. `family` names other files, by
    their paths from this one, whose kernels compute the same: "auto" chooses among all. [docs/tuning.md]

    A Hopper kernel that does not support a call's sizes, since TMA cannot take their row pitch, hands the call to the
    same kernel without TMA, which is built when it is first needed.
    Raises Tile2CuError, and the errors of load_kernel.
    """
    if not isinstance(path, str | Path):
        function = origin(path)
        live, named = Live(names=function.names), {**function.around, **bindings}
        resolved = resolve_call(function, live, named, target=target)
        return load_resolved(resolved, style=style, device=device, check=check, **(options or {}))
    file, chip = Path(path), find(auto_target() if target == "auto" else target)
    if tiles not in (None, "auto", "default"):
        raise Tile2CuError("T2C-C012", f"`tiles` is {tiles!r}", help='it is "auto", "default" or None')

    def loaded(
        file: Path, kernel: str | None, chip: Target, tiles: Tiles | None, bindings: Mapping[str, Any]
    ) -> Kernel:
        text = emitted_source(file, kernel, target=chip.name, style=style, bindings=bindings, tiles=tiles)
        return load_kernel(text, device=device, check=check, source=file, **(options or {}))  # type: ignore[arg-type]

    def with_setting(member: Path, setting: Mapping[str, int]) -> Kernel:
        name = kernel if member == file else None
        return _complete(loaded, member, name, chip, "default", {**bindings, **setting})

    if file.suffix in EMITTED:
        return loaded(file, kernel, chip, None, bindings)
    if tiles == "auto" or family:
        members = family_of(file, kernel, chip, bindings, family)
        if members[0].program.sizes:
            return KernelBySize(members, with_setting)
        place, choice = fastest(members, {})
        return _complete(loaded, members[place].path, kernel if place == 0 else None, chip, choice or "auto", bindings)
    return _complete(loaded, file, kernel, chip, tiles, bindings)


def _complete(
    loaded: Callable[[Path, str | None, Target, Tiles | None, Mapping[str, Any]], Kernel],
    path: Path,
    kernel: str | None,
    target: Target,
    tiles: Tiles | None,
    bindings: Mapping[str, Any],
) -> Kernel:
    """A kernel with what needs the Python file: its layouts, its work, and another kernel for other sizes."""
    found = loaded(path, kernel, target, tiles, bindings)
    auto = any(fact.what == TILES.name for fact in found.manifest.facts)
    chosen = tiles if isinstance(tiles, Choice) else "auto" if auto else "default"
    resolved = partial(one_resolved_kernel, path, kernel, target=target, bindings=bindings, tiles=chosen)
    found.layouts = Layouts(lambda: layouts_of(resolved()))
    found.mma_flops = lambda sizes: mma_flops(resolved()[0].program, sizes)
    if target.tma:
        found.otherwise = lambda: loaded(path, kernel, SM80, "default", bindings)
    return found


def resolve_call(
    found: Origin, live: Live, arguments: Mapping[str, object], *, target: str = "auto"
) -> tuple[Resolved, ...]:
    """All that is decided about each launch of a function's kernel, for a call of a running program.

    `arguments` are those of the functions around the kernel and its own, as Python objects. Raises Tile2CuError.
    """
    bindings = {name: as_argument(name, value) for name, value in arguments.items()}
    kernels = resolved_kernels(
        found.path,
        kernel=found.kernel,
        target=find(auto_target() if target == "auto" else target),
        bindings=bindings,
        text=found.text,
        live=live,
    )
    named = [launches for launches in kernels if launches[0].program.function == found.function]
    if len(named or kernels) > 1:
        names = ", ".join(launches[0].program.name for launches in kernels)
        raise Tile2CuError("T2C-C004", f"`{found.kernel}` makes several kernels: {names}")
    return (named or kernels)[0]


def load_resolved(
    resolved: tuple[Resolved, ...], *, style: str = "tl", device: str | None = None, **options: Any
) -> Kernel:
    """Builds what was decided about a kernel, and returns it as a callable. The arguments are those of `load`.

    Raises the errors of load_kernel.
    """
    emitted = emit_kernel(resolved, tool=this_tool(), options=EmitOptions(style=checked_style(style)))
    name, _ = next((name, text) for name, text in emitted.files.items() if name.endswith(resolved[0].target.suffix))

    def build(temporary: Path, _place: Path) -> None:
        write_files(emitted.files, temporary)

    parts = (part for file in sorted(emitted.files.items()) for part in file)
    folder = cache.get_or_build("emitted", cache.content_key(*parts), build).folder
    loaded = load_kernel(folder / name, device=device, **options)  # type: ignore[arg-type]
    loaded.layouts = Layouts(partial(layouts_of, with_namespaces(resolved)))
    loaded.mma_flops = partial(mma_flops, resolved[0].program)
    return loaded


def emitted_source(
    path: Path,
    kernel: str | None,
    *,
    target: str,
    style: str,
    bindings: Mapping[str, object],
    tiles: Tiles | None = "default",
) -> Path:
    """The kernel's source in the folder of its emitted files. A path to an emitted file is that file itself.

    `tiles` are as in `load`, or what was chosen.
    """
    if path.suffix in EMITTED:
        return path
    chip = find(auto_target() if target == "auto" else target)
    folder = _emitted_folder(path, kernel, chip, checked_style(style), bindings, tiles)
    (text,) = folder.glob(f"*{chip.suffix}")
    return text


def _emitted_folder(
    path: Path, kernel: str | None, target: Target, style: str, bindings: Mapping[str, Any], tiles: Tiles | None
) -> Path:
    """The folder of the kernel's files: from the cache when the same sources were emitted the same way before."""
    text = read_python(path)
    tuned = [] if tiles == "default" else [each.read_bytes() for each in sorted(path.parent.glob("*.tune.json"))]
    wanted = repr((path.name, kernel, target.name, style, tiles, tuned, sorted(bindings.items())))

    def build(temporary: Path, _place: Path) -> None:
        which = tiles or implied_tiles(path, text, kernel, target, bindings)
        options = EmitOptions(style=style, tiles="default" if which == "default" else "auto")
        choice = which if isinstance(which, Choice) else None
        emitted = emit_text(
            path, kernel=kernel, target=target, bindings=bindings, text=text, options=options, choice=choice
        )
        require_one_kernel([one.kernel for one in emitted])
        write_files(emitted[0].files, temporary)

    # The manifest lists the source's imports: an entry with other imports is another kernel.
    imports: dict[str, str | None] = {}
    while True:
        key = cache.content_key(text, wanted, this_tool().sha256, repr(sorted(imports.items())))
        folder = cache.get_or_build("emitted", key, build).folder
        (manifest,) = map(read_manifest, manifests(folder))
        recorded = manifest["source"]["imports"] if manifest else {}
        now = {name: source_sha256(path.parent / name) for name in recorded}
        if now in (recorded, imports):
            return folder
        imports = now
