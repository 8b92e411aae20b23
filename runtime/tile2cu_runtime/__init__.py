"""Builds, caches, loads and launches emitted kernels. Depends on manifest and source, never on the transpiler."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile2cu_runtime.device import auto_target
    from tile2cu_runtime.engine import EngineOptions
    from tile2cu_runtime.errors import (
        ArgumentError,
        CompileError,
        DeviceError,
        Error,
        LaunchError,
        ManifestError,
        OptionError,
        SimulationError,
        Tile2CuRuntimeError,
    )
    from tile2cu_runtime.kernel import Kernel
    from tile2cu_runtime.load import load_kernel
    from tile2cu_runtime.paths import cache_dir, headers_dir
    from tile2cu_runtime.report import CheckError, Finding, GlobalAccess, Place, Report, SharedAccess
    from tile2cu_runtime.spec import Manifest, parse_manifest, read_manifest

__all__ = [
    "ArgumentError",
    "CheckError",
    "CompileError",
    "DeviceError",
    "EngineOptions",
    "Error",
    "Finding",
    "GlobalAccess",
    "Kernel",
    "LaunchError",
    "Manifest",
    "ManifestError",
    "OptionError",
    "Place",
    "Report",
    "SharedAccess",
    "SimulationError",
    "Tile2CuRuntimeError",
    "auto_target",
    "cache_dir",
    "headers_dir",
    "load_kernel",
    "parse_manifest",
    "read_manifest",
]

_MODULES = ("paths", "errors", "spec", "report", "device", "engine", "kernel", "load")


def __getattr__(name: str) -> Any:
    """Imports the modules of the names above on first use: `tile2cu build` needs `paths` only."""
    if name in __all__:
        for module in (import_module(f"tile2cu_runtime.{each}") for each in _MODULES):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'tile2cu_runtime' has no attribute {name!r}")
