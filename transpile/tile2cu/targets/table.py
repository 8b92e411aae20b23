"""The fields of every target's table."""

from typing import Literal

from tile2cu.core.dtype import FLOATS_OF_8_BITS, FNUZ_FLOATS, OCP_FLOATS, DType
from tile2cu.core.record import Record


class Mma(Record, frozen=True):
    """One shape of mma.sync: `m`, `n`, `k` in elements of `operand`.

    `through` is the type that operands are converted to first, exactly, where the target has no
    instruction of its own for them. `sparse` is mma.sp: of each four neighbours along K, A has two.
    """

    operand: DType
    accumulator: DType
    m: int
    n: int
    k: int
    through: DType | None = None
    sparse: bool = False

    def __post_init__(self) -> None:
        if self.k * self.operand.bits != (512 if self.sparse else 256):
            raise ValueError("mma.sync reads 256 bits of K from each row of A")


class Wgmma(Record, frozen=True):
    """One row of wgmma.mma_async: 64 rows, N in eights up to 256, `k` in elements of `operand`."""

    operand: DType
    accumulator: DType
    k: int

    def __post_init__(self) -> None:
        if self.k * self.operand.bits != 256:
            raise ValueError("wgmma reads 256 bits of K from each row")


class Mfma(Record, frozen=True):
    """One v_mfma_* of a wave of 64: `size` rows by `size` columns, `k` in elements of `operand`.

    A lane holds `lane_elements` k of one row of A (or column of B), 16 bytes side by side, and `run` consecutive
    rows of one column of D at a time, again and again until it has size * size / 64 of them. `through` as in Mma.
    `operand_b` is the type of the GEMM's B where it is another one. The instruction takes B first (it computes the
    transpose), so that its name begins with that.
    """

    name: str
    operand: DType
    accumulator: DType
    size: int
    k: int
    through: DType | None = None
    operand_b: DType | None = None

    def __post_init__(self) -> None:
        if any(each.bits != self.operand.bits for each in self.operands):
            raise ValueError("both operands of an MFMA have as many bits")
        if self.size not in (16, 32):
            raise ValueError("an MFMA without broadcast has 16 or 32 rows and columns")
        if self.lane_bytes not in (4, 8, 16, 32):
            raise ValueError("a lane's operand is one, two, four or eight registers")
        if self.accumulator.bits not in (32, 64):
            raise ValueError("an MFMA accumulates in 32 or 64 bits")

    @property
    def operands(self) -> tuple[DType, DType]:
        return self.operand, self.operand_b or self.operand

    @property
    def lane_elements(self) -> int:
        return self.size * self.k // 64

    @property
    def lane_bytes(self) -> int:
        return self.lane_elements * (self.through or self.operand).bits // 8

    @property
    def run(self) -> int:
        return 1 if self.accumulator.bits == 64 else 4

    def place_of_a(self, i: int, k: int) -> tuple[int, int]:
        """(item, lane) of A[i][k], and of B[k][i]."""
        side_by_side = self.lane_elements * min(16, self.lane_bytes) // self.lane_bytes
        piece, lanes = k // side_by_side, 64 // self.size
        return piece // lanes * side_by_side + k % side_by_side, i + self.size * (piece % lanes)

    def place_of_d(self, i: int, j: int) -> tuple[int, int]:
        """(item, lane) of D[i][j]."""
        groups = 64 // self.size
        return i % self.run + self.run * (i // (self.run * groups)), j + self.size * (i // self.run % groups)


class Target(Record, frozen=True):
    """A target. `shared_limit` is the bytes that a block may use; `name` is spelled as on the command line.

    `mma` and `wgmma` are NVIDIA's matrix instructions, `mfma` AMD's, those first that are preferred.
    `load_lds` are the bytes per lane of one global_load_lds; elements of `transposing_reads` bytes
    can be read from shared memory across rows. `fp8` is whose 8-bit floating point the target's
    instructions mean: OCP's, or FNUZ, without infinities and negative zero. `max_registers`, of 4 bytes, are a
    thread's, and `registers_of_block` those of all threads of a block. On AMD a CU has `simds`, whose registers its
    waves share, and allocates LDS in steps of `lds_step` bytes.
    [CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; AMD Instinct MI200 ISA, "VGPRs",
    "LDS"]
    """

    name: str
    arch: str
    shared_limit: int
    warp_size: int
    max_threads: int
    cp_async: bool
    mma: tuple[Mma, ...]
    source: str
    capability: tuple[int, int] = (8, 0)
    max_registers: int = 255
    registers_of_block: int = 65536
    multiprocessors: int = 108  # the number that drivers report
    wgmma: tuple[Wgmma, ...] = ()
    tma: bool = False
    mfma: tuple[Mfma, ...] = ()
    load_lds: tuple[int, ...] = ()
    transposing_reads: tuple[int, ...] = ()
    fp8: Literal["ocp", "fnuz", ""] = "ocp"
    banks: int = 32
    simds: int = 4
    lds_step: int = 512
    clang: int = 0  # the major version whose code the tests examine
    dies: int = 1  # to which the hardware assigns blocks round-robin, each with an L2 of its own

    def __post_init__(self) -> None:
        if self.mfma and (self.warp_size != 64 or self.mma or self.wgmma):
            raise ValueError("MFMA runs on waves of 64, and nowhere where mma.sync does")
        own = {"ocp": OCP_FLOATS, "fnuz": FNUZ_FLOATS, "": ()}[self.fp8]
        direct = {operand for row in self.mfma if not row.through for operand in row.operands}
        if direct & set(FLOATS_OF_8_BITS) - set(own):
            raise ValueError("an MFMA of 8-bit floating point multiplies the target's own format")

    @property
    def is_amd(self) -> bool:
        return self._language == "hip"

    @property
    def shared_memory(self) -> int:
        """Bytes of an SM, of which each block of NVIDIA's takes 1024 for itself. [CUDA C++ Programming
        Guide, "Technical Specifications per Compute Capability"; AMD CDNA ISA, "LDS"]"""
        return self.shared_limit + (0 if self.is_amd else 1024)

    @property
    def suffix(self) -> str:
        """Of the text's file: the language's own."""
        return {"cuda": ".cu", "hip": ".hip"}[self._language]

    @property
    def stream(self) -> str:
        """The type of a stream in the text's language."""
        return f"{self._language}Stream_t"

    @property
    def kernels_only_macro(self) -> str:
        """What a compiler defines that takes kernels without their launchers: NVRTC. [NVRTC, "Predefined Macros"]"""
        return {"cuda": "__CUDACC_RTC__", "hip": ""}[self._language]

    @property
    def _language(self) -> str:
        return self.name.partition(":")[0]

    def code_runs_on(self, other: "Target") -> bool:
        """Whether code for this target runs on the other. [PTX ISA, ".target": sm_90a code on 9.0 alone; LLVM, "User
        Guide for AMDGPU Backend", "Processors": a code object is for one]"""
        if self._language == "hip" or self.arch.endswith("a"):
            return self.arch == other.arch
        return self._language == other._language and self.capability <= other.capability

    def instruction(self, operand: DType, accumulator: DType, *, sparse: bool = False) -> Mma | None:
        """The row of the table for these types, or None."""
        wanted = (operand, accumulator, sparse)
        rows = (row for row in self.mma if (row.operand, row.accumulator, row.sparse) == wanted)
        return next(rows, None)
