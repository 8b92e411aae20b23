"""`tilelang.lower`: the emitted source without a build."""

from __future__ import annotations

from typing import Any

from tile2cu.api_words import speaks_python
from tile2cu.core.origin import EmitOptions
from tile2cu.core.record import Record
from tile2cu.emitter import emit_kernel
from tile2cu.frontend.live import Live
from tile2cu.loading import resolve_call
from tile2cu.tilelang.options import options_of
from tile2cu.tilelang.primfunc import PrimFunc
from tile2cu.tool import this_tool


class Artifact(Record, frozen=True, kw_only=True):
    """What `tilelang.lower` gives: the sources, and the manifest as JSON."""

    kernel_source: str
    host_source: str
    manifest: str
    func: PrimFunc


@speaks_python
def lower(func: PrimFunc, target: Any = "auto", target_host: Any = None, **options: Any) -> Artifact:
    """The emitted source of a function with `@T.prim_func`. Errors: Tile2CuError."""
    for name in ("runtime_only", "enable_host_codegen", "enable_device_compile"):
        options.pop(name, None)
    chosen = options_of(target=target, target_host=target_host, **options)
    live = Live(names=func.origin.names, own_barriers=chosen.own_barriers)
    emitted = emit_kernel(
        resolve_call(func.origin, live, func.origin.around, target=chosen.target),
        tool=this_tool(),
        options=EmitOptions(),
    )
    header = emitted.files[f"{emitted.kernel}.h"]
    return Artifact(kernel_source=emitted.source, host_source=header, manifest=emitted.manifest, func=func)
