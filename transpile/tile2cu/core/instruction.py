"""The instruction that computes an MMA, with its shape and types as data."""

from enum import Enum

from tile2cu.core.dtype import DType
from tile2cu.core.record import Record


class MmaUnit(Enum):
    """The unit that multiplies: a warp's or a wave's MMA instructions, a warpgroup's asynchronous ones, or FMA."""

    FMA = "fma"
    WARP = "warp"
    WARPGROUP = "warpgroup"


class MmaInstruction(Record, frozen=True, kw_only=True):
    """One instruction: `m` x `n` x `k` in elements of the `operand` types of A and B, added to `accumulator`.

    `through` is the type that operands are first converted to, exactly, where the target has no instruction for their
    own type. A `sparse` one takes two of each four adjacent elements of A along K.
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

    @property
    def is_mfma(self) -> bool:
        """Whether it is one of AMD's matrix cores."""
        return self.name.startswith("v_mfma")

    def __str__(self) -> str:
        return f"{self.name} through {self.through}" if self.through else self.name


Counts = tuple[tuple[MmaInstruction, int], ...]

WARPGROUP_WARPS = 4
# PTX's names of element types. [PTX ISA, "Fundamental Types", "Alternate Floating-Point Data Formats"]
_PTX = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "tfloat32": "tf32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int4": "s4",
    "uint4": "u4",
    "int8": "s8",
    "uint8": "u8",
    "int32": "s32",
}


def mma_sync(
    m: int, n: int, k: int, operand: DType, accumulator: DType, through: DType | None = None, sparse: bool = False
) -> MmaInstruction:
    """A warp's instruction. [PTX ISA, "mma.sync"]"""
    d, a = _PTX[accumulator.name], _PTX[operand.name]
    return MmaInstruction(
        name=f"mma{'.sp' if sparse else ''}.m{m}n{n}k{k}.{d}.{a}.{a}.{d}",
        unit=MmaUnit.WARP,
        m=m,
        n=n,
        k=k,
        operands=(operand, operand),
        accumulator=accumulator,
        through=through,
        sparse=sparse,
    )


def wgmma(n: int, k: int, operand: DType, accumulator: DType) -> MmaInstruction:
    """A warpgroup's instruction. [PTX ISA, "wgmma.mma_async"]"""
    d, a = _PTX[accumulator.name], _PTX[operand.name]
    return MmaInstruction(
        name=f"wgmma.m64n{n}k{k}.{d}.{a}.{a}",
        unit=MmaUnit.WARPGROUP,
        m=64,
        n=n,
        k=k,
        operands=(operand, operand),
        accumulator=accumulator,
    )


def fma(a: DType, b: DType, accumulator: DType) -> MmaInstruction:
    """FMA by each thread."""
    return MmaInstruction(name="fma", unit=MmaUnit.FMA, m=1, n=1, k=1, operands=(a, b), accumulator=accumulator)


def executed(mma: MmaInstruction, mnk: tuple[int, int, int], along_m: int, along_n: int) -> Counts:
    """The instructions that each of `along_m` x `along_n` warps, waves or warpgroups executes for a tile M x N x K.

    One of PTX that is computed `through` another type is several of that type: each reads as many bits of K.
    """
    if mma.through is not None and mma.name.startswith("mma.m"):
        k = mma.k * mma.operands[0].bits // mma.through.bits
        mma = mma_sync(mma.m, mma.n, k, mma.through, mma.accumulator)
    steps = mnk[0] // along_m // mma.m * (mnk[2] // mma.k)
    whole, rest = divmod(mnk[1] // along_n, mma.n)
    counts: Counts = ((mma, steps * whole),)
    return (*counts, (wgmma(rest, mma.k, mma.operands[0], mma.accumulator), steps)) if rest else counts
