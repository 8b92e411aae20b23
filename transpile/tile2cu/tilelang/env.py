"""`tilelang.env` and its cache: tile2cu keeps builds by their content, so that the cache has no wrong entries."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tile2cu.tilelang.notes import once
from tile2cu_runtime.paths import cache_dir


class Environment:
    """TileLang's variables, as far as they mean something here."""

    @property
    def TILELANG_CACHE_DIR(self) -> str:  # noqa: N802 - TileLang's name
        """The build cache: TILE2CU_CACHE, or its default."""
        return str(cache_dir())

    def is_cache_enabled(self) -> bool:
        """Always: entries are found by the content of all that decides them."""
        return True

    def is_light_import(self) -> bool:
        """False: nothing is left out."""
        return False


env = Environment()


def is_cache_enabled() -> bool:
    """Always: entries are found by the content of all that decides them."""
    return True


def enable_cache() -> None:
    """Nothing to do: the cache is always on."""


def disable_cache() -> None:
    """Has no effect: a build is found by the content of its sources, so that it is never out of date."""
    once("disable_cache() has no effect: builds are found by the content of their sources")


def clear_cache() -> None:
    """Has no effect; remove the folder of tile2cu_runtime.cache_dir() to build anew."""
    once(f"clear_cache() has no effect: remove {cache_dir()} to build anew")


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keeps builds in this folder from now on."""
    os.environ["TILE2CU_CACHE"] = str(path)


def cached(func: Any, *args: Any, **options: Any) -> Any:
    """`tilelang.cached`: the compiled kernel, which the cache finds."""
    compile: Callable[..., Any] = __import__("tile2cu.tilelang.jit", fromlist=["compile"]).compile
    return compile(func, *args, **options)


def set_log_level(level: Any) -> None:
    """Has no effect: decisions are in `tile2cu explain`, warnings are Python's."""
    once("set_log_level() has no effect: `tile2cu explain FILE` reports the decisions")
