"""tile2cu: tile-language Python to CUDA and HIP text that a reviewer can read and sign."""

from typing import TYPE_CHECKING, Any

from tile2cu.core.errors import Tile2CuError
from tile2cu.version import VERSION

if TYPE_CHECKING:
    from tile2cu.api import emit
    from tile2cu.loading import load

__version__ = VERSION
__all__ = ["Tile2CuError", "__version__", "emit", "load"]


def __getattr__(name: str) -> Any:
    """`emit` and `load` bring their modules when first asked for, so that `import tile2cu` stays quick."""
    if name == "emit":
        from tile2cu.api import emit

        return emit
    if name == "load":
        from tile2cu.loading import load

        return load
    raise AttributeError(f"module 'tile2cu' has no attribute {name!r}")
