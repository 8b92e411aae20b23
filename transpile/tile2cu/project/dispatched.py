"""A dispatch as a job writes it: its kernels, and its own text and header under a manifest of their own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tile2cu.core.dispatch import Dispatch, Entry
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import EmitOptions
from tile2cu.emitter import Emitted, Resolved
from tile2cu.project.on_disk import sha256
from tile2cu.targets import SM80, Target


def dispatched(wanted: Dispatch, folder: Path, options: EmitOptions) -> tuple[Emitted, ...]:
    """The files of each kernel of a dispatch, then those of the dispatch. Raises what `tile2cu.dispatch` does."""
    from tile2cu.api import dispatch

    files = dispatch(wanted, folder, options=options)
    manifests = {name.removesuffix(".json"): json.loads(text) for name, text in files.items() if name.endswith(".json")}
    kernels = []
    for kernel, manifest in manifests.items():
        own = {name: files.pop(name) for name in (*manifest["files"], f"{kernel}.json")}
        kernels.append(Emitted(kernel, Path(next(iter(own))).suffix, own))
    name = f"{wanted.name}_dispatch"
    files[f"{name}.json"] = _manifest(name, list(manifests.values()), files)
    return (*kernels, Emitted(name, ".cpp", files))


def by_architecture(
    path: Path, kernel: str | None, *, targets: Sequence[Target], bindings: Mapping[str, object], options: EmitOptions
) -> tuple[Emitted, ...]:
    """Each kernel of a file for several targets of one language, and a dispatch that chooses by the device.

    The kernel NAME for cuda:sm_80 is the C function NAME_sm_80, so that one binary can have all of them; the dispatch
    is NAME. It tries the newest architecture first. Errors: those of emit_text, T2C-E022, T2C-C003 for targets of
    several languages.
    """
    from tile2cu.api import emitted, resolved_text
    from tile2cu.emitter.dispatch import emit_dispatch
    from tile2cu.tool import this_tool

    if len({target.name.partition(":")[0] for target in targets}) > 1:
        names = ", ".join(target.name for target in targets)
        raise Tile2CuError("T2C-C003", f"{names} are of several languages", help="name those of one language")
    files: list[Emitted] = []
    entries: dict[str, list[tuple[Entry, tuple[Resolved, ...]]]] = {}
    for target in sorted(targets, key=lambda target: sum(map(target.code_runs_on, targets))):
        found, own = resolved_text(path, kernel=kernel, target=target, bindings=bindings, options=options)
        for launches in found:
            name, entry = launches[0].program.name, Entry(name=target.arch, target=target.name)
            renamed = _renamed(launches, f"{name}_{entry.name}")
            files.append(emitted(renamed, replace(own, name=f"{name}_{entry.name}")))
            entries.setdefault(name, []).append((entry, renamed))
    for name, kernels in entries.items():
        wanted = Dispatch(name=name, entries=tuple(entry for entry, _ in kernels))
        table = emit_dispatch(
            wanted, [launches for _, launches in kernels], tool=this_tool(), options=options, takes_all=False
        )
        own_names = {f"{name}_{entry.name}" for entry in wanted.entries}
        table_name = f"{name}_dispatch"
        described = [json.loads(one.manifest) for one in files if one.kernel in own_names]
        files.append(
            Emitted(table_name, ".cpp", {**table, f"{table_name}.json": _manifest(table_name, described, table)})
        )
    return tuple(files)


def _renamed(launches: tuple[Resolved, ...], name: str) -> tuple[Resolved, ...]:
    program = launches[0].program
    program = replace(program, name=name, alias_of=program.alias_of or program.name)
    return tuple(replace(each, program=program) for each in launches)


def any_size(
    path: Path, kernel: str | None, *, target: Target, bindings: Mapping[str, object], options: EmitOptions
) -> tuple[Emitted, ...]:
    """A kernel for a target with TMA, the same without, and a dispatch that hands the latter what TMA cannot take.

    The C function is called as the kernel. A target without TMA needs no second kernel: its own is all.
    Errors: those of emit_text and of dispatch; T2C-C004 where the file has several kernels.
    """
    from tile2cu.api import emit_text, one_resolved_kernel

    if not target.tma:
        return emit_text(path, kernel=kernel, target=target, bindings=bindings, options=options)
    program = one_resolved_kernel(path, kernel, target=target, bindings=bindings)[0].program
    name = options.name or program.name
    shared = {"file": path.name, "kernel": program.alias_of or program.name, "bindings": bindings}
    entries = (
        Entry(name="tma", target=target.name, **shared),  # type: ignore[arg-type]
        Entry(name="any", target=SM80.name, **shared),  # type: ignore[arg-type]
    )
    return dispatched(Dispatch(name=name, entries=entries), path.parent, options)


def _manifest(name: str, kernels: list[dict[str, Any]], files: Mapping[str, str]) -> str:
    """What the dispatch was made from: the sources of all its kernels."""
    first, *others = (kernel["source"] for kernel in kernels)
    imports = {each["file"]: each["sha256"] for each in others if each["file"] != first["file"]}
    content = {
        "format": 1,
        "tile2cu": kernels[0]["tile2cu"],
        "tool": kernels[0]["tool"],
        "kernel": name,
        "dispatches": [kernel["kernel"] for kernel in kernels],
        "target": ", ".join(dict.fromkeys(kernel["target"] for kernel in kernels)),
        "source": {**first, "imports": {**first["imports"], **imports}},
        "look": kernels[0]["look"],
        "bindings": {kernel["kernel"]: kernel["bindings"] for kernel in kernels},
        "files": {file: sha256(text) for file, text in files.items()},
    }
    return json.dumps(content, indent=1) + "\n"
