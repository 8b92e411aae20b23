"""The arguments that `jit`, `compile` and the like share, and what of them is used."""

import os
import re
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from msgspec import field

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record
from tile2cu.targets import TARGETS
from tile2cu.tilelang.notes import ignored, once

DEVICE = "TILE2CU_DEVICE"  # "cpu": kernels run on the CPU engine
TARGET = "TILE2CU_TARGET"  # the target of kernels whose program names none
_NO_BARRIERS = "tl.disable_thread_storage_sync"
_TARGETS = tuple(target.name for target in TARGETS)
_ARCHITECTURE = re.compile(r"(sm_\d+a?|gfx\w+)")

PASS_CONFIGS = MappingProxyType(
    {
        "TL_DISABLE_THREAD_STORAGE_SYNC": "the file writes all barriers; no others are emitted",
        "TL_ENABLE_FAST_MATH": "each function's instruction is in the emitted source, as ex2.approx.ftz",
        "TL_DISABLE_WARP_SPECIALIZED": "the rules decide by the kernel; `tile2cu explain` gives the reason",
        "TL_DISABLE_TMA_LOWER": "the rules decide; disable_tma=True of one T.copy counts",
        "TL_DISABLE_DATA_RACE_CHECK": 'tile2cu.load(..., check=True) checks for races when a kernel runs',
        "TL_DISABLE_VECTORIZE_256": "accesses have at most 16 bytes per thread",
        "TL_DISABLE_OUT_OF_BOUND_WARNING": "accesses that are always outside are errors",
        "TL_ENABLE_LOWER_LDGSTG": "accesses are C++; nvcc selects ld.global",
        "TL_ENABLE_LOWER_LDGSTG_PREDICATED": "accesses are C++; nvcc selects ld.global",
        "TL_PTXAS_REGISTER_USAGE_LEVEL": "registers per thread come from __launch_bounds__",
        "TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE": "tiles whose lifetimes are disjoint share memory anyway",
        "TL_ENABLE_PTXAS_VERBOSE_OUTPUT": "kernel.resources() has ptxas' report",
        "TL_DEVICE_COMPILE_FLAGS": "nvcc's options are fixed, so that the emitted source alone decides the code",
        "TL_LAYOUT_VISUALIZATION_ENABLE": "kernel.layouts and `tile2cu layout` plot layouts",
        "TL_LAYOUT_VISUALIZATION_FORMATS": "kernel.layouts and `tile2cu layout` plot layouts",
        "TL_DISABLE_SAFE_MEMORY_ACCESS": "accesses are checked where they are not known to be inside",
        "TL_CONFIG_INDEX_BITWIDTH": "the ranges of indices decide between 32 and 64 bits",
        "TL_DISABLE_SHUFFLE_ELECT": "the emitted source states which thread issues",
        "TL_SIMPLIFY": "passes are listed in docs/rules.md",
        "TL_DISABLE_FAST_MATH": "each function's instruction is in the emitted source",
        "TL_ENABLE_ASYNC_COPY": "the rules decide copies; `tile2cu explain` gives the reason",
        "TL_DISABLE_WGMMA": "the target decides: cuda:sm_80 has no wgmma",
        "TL_ENABLE_DUMP_IR": "`tile2cu explain` reports the decisions",
    }
)  # fmt: skip
PassConfigKey = Enum("PassConfigKey", {name: name.lower().replace("_", ".", 1) for name in PASS_CONFIGS}, type=str)  # type: ignore[misc]
_REASONS = {name.lower().replace("_", ".", 1): reason for name, reason in PASS_CONFIGS.items()}


class Options(Record, frozen=True, kw_only=True):
    """How a kernel is compiled. `target` is tile2cu's name of it; `device` None for what this machine has."""

    out_idx: Any = None
    target: str = "auto"
    device: str | None = None
    own_barriers: bool = False
    pass_configs: Mapping[str, Any] = field(default_factory=dict)


def options_of(
    *,
    out_idx: Any = None,
    target: Any = None,
    pass_configs: Mapping[Any, Any] | None = None,
    **others: Any,
) -> Options:
    """The options of a call, with a note about each that has no effect. Errors: T2C-C031 for another target."""
    ignored(**others)
    configs = {str(getattr(key, "value", key)): value for key, value in (pass_configs or {}).items()}
    for key, value in configs.items():
        if value and key != _NO_BARRIERS:
            reason = _REASONS.get(key, "tile2cu has no such pass")
            once(f'the pass config "{key}" has no effect: {reason}')
    return Options(
        out_idx=out_idx,
        target=_target(target),
        device=os.environ.get(DEVICE) or None,
        own_barriers=configs.get(_NO_BARRIERS) is True,
        pass_configs=configs,
    )


def _target(target: Any) -> str:
    """TileLang's target as tile2cu's name: "cuda", "cuda -arch=sm_90a", {"kind": "hip", "mcpu": "gfx942"}."""
    text = " ".join(map(str, target.values())) if isinstance(target, dict) else str(target or "auto")
    found = _ARCHITECTURE.search(text)
    if found is None:
        if text not in ("auto", "cuda", "hip", "rocm"):
            raise _unknown_target(text)
        default = os.environ.get(TARGET) or "auto"
        return "hip:gfx942" if text in ("hip", "rocm") and not default.startswith("hip") else default
    named = [name for name in _TARGETS if name.partition(":")[2] in (found[1], f"{found[1]}a")]
    if not named:
        raise _unknown_target(text)
    return named[0]


def _unknown_target(text: str) -> Tile2CuError:
    return Tile2CuError(
        "T2C-C031",
        f"there is no target `{text}`",
        help=f'"auto", "cuda", "hip", or one of {", ".join(_TARGETS)}; {DEVICE}=cpu runs kernels on the CPU engine',
    )
