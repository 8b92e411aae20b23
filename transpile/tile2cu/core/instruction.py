"""The instruction that computes an MMA, with its shape and types as data."""

from dataclasses import dataclass
from enum import Enum

from tile2cu.core.dtype import DType


class MmaUnit(Enum):
    """What multiplies: a warp's or a wave's matrix instructions, a warpgroup's asynchronous ones, or FMA."""

    FMA = "fma"
    WARP = "warp"
    WARPGROUP = "warpgroup"


@dataclass(frozen=True, kw_only=True)
class MmaInstruction:
    """One instruction: `m` x `n` x `k` in elements of the `operand` types of A and B, added to `accumulator`.

    `through` is the type that operands are converted to first, exactly, where the chip has no instruction of its own
    for them. A `sparse` one takes two of each four neighbours of A along K.
    """

    name: str
    unit: MmaUnit
    m: int
    n: int
    k: int
    operands: tuple[DType, DType]
    accumulator: DType
    through: DType | None = None
    sparse: bool = False

    def __str__(self) -> str:
        return f"{self.name} through {self.through}" if self.through else self.name


def fma(a: DType, b: DType, accumulator: DType) -> MmaInstruction:
    """Each thread multiplies and adds."""
    return MmaInstruction(name="fma", unit=MmaUnit.FMA, m=1, n=1, k=1, operands=(a, b), accumulator=accumulator)
