"""Required properties of the code object of any emitted source."""

from __future__ import annotations

from pathlib import Path

from tile2cu_runtime import Kernel
from tile2cu_runtime.amdgcn import CodeObject
from tile2cu_runtime.amdgcn.code_object import LDS_BYTES
from tile2cu_runtime.hip import CODE_OBJECT


def assert_well_compiled(kernel: Kernel) -> None:
    """No register is spilled, no scratch memory is used, and GEMMs use MFMA in the inner loop.

    If the source requests two waves per SIMD, no value is moved to or from accumulation registers.
    """
    path = kernel.library.parent / CODE_OBJECT
    products = any(call in kernel.source for call in ("tl::gemm(", "tl::block_gemm<"))
    assert_no_spills(path, products=products)
    if "waves_per_simd" in kernel.source:
        assert not [name for name in CodeObject.load(path).listing.names() if name.startswith("v_accvgpr")]


def assert_no_spills(path: Path, *, products: bool) -> None:
    """The same of a file, and accesses of 16 bytes are whole.

    For gfx950 there is a newer clang, which keeps some scalars in lanes of vector registers.
    """
    assert_fits(path)
    code = CodeObject.load(path)
    if code.target == "gfx950":
        return
    assert code.kernel_names and not any(code.kernel(name).spills for name in code.kernel_names)
    # A vector of four words whose last word is accessed behind a branch of its own.
    assert not [name for name in code.listing.names() if name.startswith("global_") and name.endswith("dwordx3")]
    has_loops = code.listing.inside_loops("")  # loops with a small trip count are unrolled
    assert code.listing.inside_loops("v_mfma") == (products and has_loops)


def assert_fits(path: Path) -> None:
    """No scratch memory is used, and the block's resources are available."""
    code = CodeObject.load(path)
    for name in code.kernel_names:
        kernel = code.kernel(name)
        assert kernel.private_bytes == 0
        assert kernel.lds_bytes <= LDS_BYTES[code.target] and kernel.registers <= 512
