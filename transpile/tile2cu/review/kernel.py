"""A kernel as it is reviewed: its decisions, its source and its manifest."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tile2cu.core.errors import Tile2CuWarning
from tile2cu.core.origin import Look, Tool
from tile2cu.emitter import Settled, emit_kernel
from tile2cu.explain import Explained, explained
from tile2cu.lint import warnings_of

# What the manifest's entries about numerics state.
_NUMERICS = {
    "products": "MMAs accumulate in",
    "reductions": "reductions accumulate in",
    "rounded": "rounded",
    "order": "order of additions",
}


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel for one target: its launches, its source and its manifest. `label` names it among others."""

    label: str
    launches: tuple[Settled, ...]
    source: str
    manifest: dict[str, Any]
    warnings: tuple[Tile2CuWarning, ...]

    @property
    def decisions(self) -> list[Explained]:
        """All decisions, launch by launch."""
        return [place for settled in self.launches for place in explained(settled)]

    @property
    def python(self) -> str:
        """The Python file's text."""
        return self.launches[0].program.source.text


def reviewed(launches: tuple[Settled, ...], *, label: str, tool: Tool, look: Look) -> Kernel:
    """A kernel as it is reviewed. Errors: Tile2CuError where it is not emitted."""
    emitted = emit_kernel(launches, tool=tool, look=look)
    return Kernel(
        label=label,
        launches=launches,
        source=emitted.source,
        manifest=json.loads(emitted.manifest),
        warnings=warnings_of(launches, emitted.source),
    )


def figures(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """What the decisions state about resources and numerics, without a compiler."""
    manifest = kernel.manifest
    for launch in manifest.get("launches") or [manifest["launch"]]:
        of = f" of {launch['kernel']}" if "kernel" in launch else ""
        yield f"grid{of}", " x ".join(map(str, launch["grid"]))
        yield f"threads per block{of}", str(launch["threads"])
        yield f"shared memory{of}", f"{launch['shared_bytes']:,} of {launch['shared_limit']:,} bytes per block"
        yield f"registers for tiles{of}", f"{launch['tile_registers']} per thread"
    for name, words in manifest["resources"]["fragments"].items():
        yield f"registers for {name}", f"{words} per thread"
    numerics = manifest["numerics"]
    for kind, found in (*numerics["accumulate"].items(), *((key, numerics[key]) for key in ("rounded", "order"))):
        if found:
            yield _NUMERICS[kind], ", ".join(map(str, found))
