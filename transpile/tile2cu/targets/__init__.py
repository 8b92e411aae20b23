"""The chips that tile2cu knows, by the name on the command line."""

import difflib

from tile2cu.core.errors import Tile2CuError
from tile2cu.targets.gfx90a import GFX90A
from tile2cu.targets.gfx942 import GFX942
from tile2cu.targets.gfx950 import GFX950
from tile2cu.targets.sm80 import SM80
from tile2cu.targets.sm89 import SM89
from tile2cu.targets.sm90a import SM90A
from tile2cu.targets.sm100a import SM100A
from tile2cu.targets.table import Mfma, Mma, Target, Wgmma

__all__ = ["TARGETS", "Mfma", "Mma", "Target", "Wgmma", "find"]

TARGETS = (SM80, SM89, SM90A, SM100A, GFX90A, GFX942, GFX950)


def find(name: str) -> Target:
    """The target of that name. Raises T2C-C003 with the list of those there are."""
    for target in TARGETS:
        if target.name == name:
            return target
    known = [target.name for target in TARGETS]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`? " if near else ""
    raise Tile2CuError("T2C-C003", f"unknown target `{name}`", help=f"{hint}the targets are {', '.join(known)}")
