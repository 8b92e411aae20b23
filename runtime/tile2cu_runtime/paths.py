"""Paths: the tl headers, the CPU engine's sources, the cache."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def headers_dir() -> Path:
    """The -I folder for `#include <tl/tl.h>`.

    A checkout's headers/ if it exists: an editable install also leaves a copy in site-packages, which becomes stale.
    Else the copy in the installed package.
    """
    checkout = _PACKAGE.parents[1] / "headers"
    return checkout if (checkout / "tl").is_dir() else _PACKAGE / "headers"


def licence_file() -> Path:
    """tile2cu's licence, which covers the tl headers."""
    checkout = _PACKAGE.parents[1] / "LICENSE"
    return checkout if checkout.is_file() else _PACKAGE / "LICENSE"


def engine_dir() -> Path:
    """The folder with the CPU engine's C++ sources."""
    return _PACKAGE / "engine"


def cache_dir() -> Path:
    """The build cache: TILE2CU_CACHE, else XDG_CACHE_HOME/tile2cu, else ~/.cache/tile2cu."""
    if chosen := os.environ.get("TILE2CU_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # XDG specification: relative paths are ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tile2cu"
