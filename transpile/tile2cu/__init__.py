"""tile2cu: tile-language Python to CUDA and HIP text that a reviewer can read and sign."""

from typing import TYPE_CHECKING, Any

from tile2cu.core.errors import Tile2CuError
from tile2cu.version import VERSION
from tile2cu_runtime.errors import Error

if TYPE_CHECKING:
    from tile2cu.api import dispatch, emit
    from tile2cu.core.dispatch import Dispatch, Entry
    from tile2cu.loading import load

__version__ = VERSION
__all__ = ["Dispatch", "Entry", "Error", "Tile2CuError", "__version__", "dispatch", "emit", "load"]


def __getattr__(name: str) -> Any:
    """The public functions bring their modules when first asked for, so that `import tile2cu` stays quick."""
    if name in ("emit", "dispatch"):
        from tile2cu import api

        return getattr(api, name)
    if name in ("Dispatch", "Entry"):
        from tile2cu.core import dispatch

        return getattr(dispatch, name)
    if name == "load":
        from tile2cu.loading import load

        return load
    raise AttributeError(f"module 'tile2cu' has no attribute {name!r}")
