"""From a tile-language file to a Python callable: emit, build, load."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tile2cu.analysis.work import mma_flops
from tile2cu.api import checked_style, emit_text, one_settled_kernel
from tile2cu.api_words import speaks_python
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import Look
from tile2cu.files import read_python, write_files
from tile2cu.frontend import programs
from tile2cu.project.on_disk import manifests, read_manifest, source_sha256
from tile2cu.review.layouts import Layouts, TileLayout, layouts_of
from tile2cu.targets import Target, find
from tile2cu.tool import this_tool
from tile2cu_runtime import cache
from tile2cu_runtime.device import auto_target
from tile2cu_runtime.load import Kernel, load_kernel

EMITTED = (".json", ".cu", ".hip")  # the suffixes of files by which an emitted kernel can be named


@speaks_python
def load(
    path: str | Path,
    kernel: str | None = None,
    *,
    target: str = "cuda:sm_80",
    style: str = "tl",
    device: str | None = None,
    check: bool = False,
    options: Mapping[str, Any] | None = None,
    **bindings: Any,
) -> Kernel:
    """Transpiles a file, builds the text and returns its kernel as a callable.

    `kernel` picks one of several; `bindings` are values for the arguments of its factory. `target` is a target's name
    or "auto"; `style` what it is written in, "tl" or "cute". `device` is "cpu" (the engine), "cuda", "hip", "sim"
    (AMD's code object, simulated), "ptx" (nvcc's PTX, simulated), or None for what this machine has. `check` runs on
    the engine or the simulator with every check on. `options` go to tile2cu_runtime.load_kernel: schedules, statistics
    and the like. The emitted files are kept in `.folder`, in the build cache.
    Raises Tile2CuError, and the errors of load_kernel.
    """
    text = emitted_source(Path(path), kernel, target=target, style=style, bindings=bindings)
    loaded = load_kernel(text, device=device, check=check, source=path, **(options or {}))  # type: ignore[arg-type]
    if Path(path).suffix not in EMITTED:
        loaded.layouts = Layouts(partial(_layouts, Path(path), kernel, find(loaded.manifest.target), bindings))
        loaded.mma_flops = partial(_mma_flops, Path(path), kernel, find(loaded.manifest.target), bindings)
    return loaded


def _layouts(path: Path, kernel: str | None, target: Target, bindings: Mapping[str, object]) -> dict[str, TileLayout]:
    return layouts_of(one_settled_kernel(path, kernel, target=target, bindings=bindings))


def _mma_flops(
    path: Path, kernel: str | None, target: Target, bindings: Mapping[str, object], sizes: Mapping[str, int]
) -> int | None:
    """The MMA operations of a call with these sizes, counted from the program."""
    (program,) = programs(path, read_python(path), kernel=kernel, bindings=bindings, target=target)
    return mma_flops(program, sizes)


def emitted_source(path: Path, kernel: str | None, *, target: str, style: str, bindings: Mapping[str, object]) -> Path:
    """The kernel's source in the folder of its emitted files. A path to an emitted file is that file itself."""
    if path.suffix in EMITTED:
        return path
    chip = find(auto_target() if target == "auto" else target)
    folder = _emitted_folder(path, kernel, chip, Look(style=checked_style(style)), bindings)
    (text,) = folder.glob(f"*{chip.suffix}")
    return text


def _emitted_folder(path: Path, kernel: str | None, target: Target, look: Look, bindings: Mapping[str, Any]) -> Path:
    """The folder of the kernel's files: from the cache when the same sources were emitted the same way before."""
    text = read_python(path)
    wanted = repr((path.name, kernel, target.name, look.style, sorted(bindings.items())))

    def build(temporary: Path, _place: Path) -> None:
        emitted = emit_text(path, kernel=kernel, target=target, bindings=bindings, text=text, look=look)
        if len(emitted) > 1:
            names = ", ".join(one.kernel for one in emitted)
            raise Tile2CuError("T2C-C004", f"the file has several kernels: {names}", help="pick one with --kernel NAME")
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
