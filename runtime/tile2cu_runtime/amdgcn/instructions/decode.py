"""Decoding of an instruction to the step that executes it: the families, in lookup order."""

from __future__ import annotations

from collections.abc import Callable

from tile2cu_runtime.amdgcn.cohort import Step
from tile2cu_runtime.amdgcn.errors import UnsupportedInstruction
from tile2cu_runtime.amdgcn.instruction import Instruction
from tile2cu_runtime.amdgcn.instructions import (
    atomics,
    bitop3,
    buffer,
    compare,
    control,
    fp8,
    fused,
    lane_access,
    lds_access,
    mfma,
    mfma_scaled,
    packed,
    private_memory,
    scalar,
    scalar_memory,
    vector,
    vector_memory,
)
from tile2cu_runtime.amdgcn.instructions.registers import Context

Builder = Callable[[Instruction, Context], Step]

# Instructions by name prefix; the first match counts.
_FAMILIES: tuple[tuple[str, Builder], ...] = (
    ("s_load_", scalar_memory.build),
    ("s_buffer_load_", scalar_memory.build),
    ("s_", scalar.build),
    ("v_mfma_scale_", mfma_scaled.build),
    ("v_mfma_f32_16x16x128_f8f6f4", mfma_scaled.build),
    ("v_mfma_f32_32x32x64_f8f6f4", mfma_scaled.build),
    ("v_mfma_", mfma.build),
    ("v_cmp", compare.build),
    ("v_fma_mix", fused.mixed),
    ("v_fmac_", fused.accumulating),
    ("v_mac_", fused.accumulating),
    ("v_fmamk_", fused.with_constant),
    ("v_fmaak_", fused.with_constant),
    ("v_dot", fused.dot_product),
    ("v_pk_", packed.build),
    ("v_cvt_f32_fp8", fp8.build),
    ("v_cvt_f32_bf8", fp8.build),
    ("v_cvt_pk_f32_", fp8.build),
    ("v_cvt_pk_fp8_", fp8.build),
    ("v_cvt_pk_bf8_", fp8.build),
    ("v_bitop3_", bitop3.build),
    ("v_", vector.build),
    ("ds_read", lds_access.build),
    ("ds_write", lds_access.build),
    ("ds_bpermute", lds_access.build),
    ("ds_permute", lds_access.build),
    ("ds_swizzle", lds_access.build),
    ("ds_", atomics.build_lds),
    ("buffer_atomic_", atomics.build_global),
    ("global_atomic_", atomics.build_global),
    ("flat_atomic_", atomics.build_global),
    ("buffer_", buffer.build_buffer),
    ("global_", vector_memory.build_global),
    ("flat_", private_memory.build_flat),
    ("scratch_", private_memory.build_scratch),
)


def build_step(instruction: Instruction, context: Context) -> Step:
    """The step. UnsupportedInstruction for an unknown instruction or unexpected operands."""
    name = instruction.name
    if name == "s_waitcnt":
        return control.build_wait(instruction)
    if name in control.WITHOUT_EFFECT:
        return control.build_nothing(instruction, context)
    if name in lane_access.BUILDERS:
        return lane_access.BUILDERS[name](instruction, context)
    for prefix, build in _FAMILIES:
        if name.startswith(prefix):
            try:
                return build(instruction, context)
            except (KeyError, IndexError, ValueError) as error:
                raise UnsupportedInstruction(f"{instruction.text} ({error})") from error
    raise UnsupportedInstruction(instruction.text)
