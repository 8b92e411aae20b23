"""`tilelang.transform`: the names of pass configs. tile2cu's passes are listed in docs/rules.md."""

from typing import Any

from tile2cu.tilelang.options import PassConfigKey
from tile2cu.tilelang.symbols import others

__all__ = ["PassConfigKey", "apply_simplify", "simplify_prim_func"]


def simplify_prim_func(func: Any) -> Any:
    """`@simplify_prim_func`: the function as it is; the rules simplify what they emit."""
    return func


apply_simplify = simplify_prim_func


__getattr__ = others(__name__)
