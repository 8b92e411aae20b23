"""The targets of tile2cu, by the name on the command line."""

import difflib
import re

from tile2cu.core.errors import Tile2CuError
from tile2cu.targets.gfx90a import GFX90A
from tile2cu.targets.gfx942 import GFX942
from tile2cu.targets.gfx950 import GFX950
from tile2cu.targets.sm80 import SM80
from tile2cu.targets.sm89 import SM89
from tile2cu.targets.sm90a import SM90A
from tile2cu.targets.sm100a import SM100A
from tile2cu.targets.table import Mfma, Mma, Target, Wgmma

__all__ = [
    "GFX90A",
    "GFX942",
    "GFX950",
    "SM80",
    "SM89",
    "SM90A",
    "SM100A",
    "TARGETS",
    "Mfma",
    "Mma",
    "Target",
    "Wgmma",
    "find",
]

TARGETS = (SM80, SM89, SM90A, SM100A, GFX90A, GFX942, GFX950)


def _near(name: str) -> str:
    """For an NVIDIA GPU without a table: the target with its features, or else one whose code runs there."""
    found = re.fullmatch(r"(?:cuda:)?sm_?(\d+)(\d)[af]?", name)
    if found is None:
        return ""
    chip = (int(found[1]), int(found[2]))
    nvidia = [target for target in TARGETS if target.name.startswith("cuda:")]
    if same := next((target for target in nvidia if target.capability == chip), None):
        return f"did you mean `{same.name}`? "
    older = [target for target in nvidia if target.capability < chip and not target.arch.endswith("a")]
    if not older:
        return f"architectures before {nvidia[0].arch} are not supported; "
    return f"the source for `{older[-1].name}` can be built for sm_{chip[0]}{chip[1]}, too; "


def find(name: str) -> Target:
    """The target of that name. Raises T2C-C003 with the list of those there are."""
    for target in TARGETS:
        if target.name == name:
            return target
    known = [target.name for target in TARGETS]
    hint = _near(name) or next(
        (f"did you mean `{near}`? " for near in difflib.get_close_matches(name, known, n=1, cutoff=0.5)), ""
    )
    raise Tile2CuError("T2C-C003", f"unknown target `{name}`", help=f"{hint}the targets are {', '.join(known)}")
