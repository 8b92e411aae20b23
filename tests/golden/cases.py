"""What emitted/ holds: each example, with the values that it was emitted with."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from unittest.mock import patch

from tile2cu import emitter
from tile2cu.api import emit_text
from tile2cu.core.origin import EmitOptions, Tool
from tile2cu.emitter import Emitted, Resolved
from tile2cu.targets import find
from tile2cu.version import VERSION

# The tool's own hash would change every file at every change of a source of tile2cu.
TOOL = Tool(version=VERSION)
ROOT = Path(__file__).resolve().parents[2]
EMITTED = ROOT / "emitted"


def about_values(text: str) -> tuple[str, ...]:
    """The lines of an emitted source's head about other values of tile parameters."""
    start, empty = "// To change a tile size", "\n//\n"
    lines = text[text.index(start) :].split(empty)[0].splitlines() if start in text else []
    return tuple(line.removeprefix("// ") for line in lines)


@dataclass(frozen=True)
class Golden:
    """An example emitted into a folder below emitted/."""

    folder: str
    example: str
    target: str = "cuda:sm_80"
    bindings: dict[str, object] = field(default_factory=dict)
    style: str = "tl"

    def files(self) -> dict[str, str]:
        """The files as they are emitted now, by their path below emitted/."""
        return self.files_of(self.emitted())

    def written(self) -> dict[str, str]:
        """The files below emitted/ that manifests of the example list, and these manifests, by their path there."""
        names: list[Path] = []
        for manifest in sorted((EMITTED / self.folder).glob("*.json")):
            content = json.loads(manifest.read_text(encoding="utf-8"))
            if content["source"]["file"] == self.example:
                names += [manifest, *(manifest.with_name(name) for name in content["files"])]
        return {str(path.relative_to(EMITTED)): path.read_text(encoding="utf-8") for path in names}

    def files_of(self, emitted: tuple[Emitted, ...]) -> dict[str, str]:
        """The files of emitted kernels, by their path below emitted/."""
        return {f"{self.folder}/{name}": text for one in emitted for name, text in one.files.items()}

    @cached_property
    def current(self) -> tuple[Emitted, ...]:
        """The example's kernels as they are emitted now, once for all tests that leave the rules as they are."""
        return self.emitted()

    def emitted(self) -> tuple[Emitted, ...]:
        """The example's kernels as they are emitted now."""
        path = ROOT / "examples" / self.example
        options = EmitOptions(style=self.style)
        return emit_text(
            path, kernel=None, target=find(self.target), bindings=self.bindings, tool=TOOL, options=options
        )

    def quickly_emitted(self) -> tuple[Emitted, ...]:
        """Likewise, but heads have from emitted/ what they state of other values of tile parameters: else the rules
        decide the kernel anew for each value, which is three quarters of an emission.
        """

        def stated(launches: tuple[Resolved, ...], *others: object) -> tuple[str, ...]:
            path = EMITTED / self.folder / f"{launches[0].program.name}{launches[0].target.suffix}"
            return about_values(path.read_text(encoding="utf-8")) if path.exists() else ()

        with patch.object(emitter, "in_words", stated):
            return self.emitted()


HOPPER_ATTENTION = {"dim": 128, "block_M": 128, "block_N": 128, "threads": 256}
CDNA_ATTENTION = {"block_M": 128, "threads": 256}
TRANSPOSED = {"dtype": "bfloat16", "out_dtype": "float32", "transpose_A": True, "transpose_B": True, "bias": True}
INT8 = {"dtype": "int8", "out_dtype": "int32", "accum_dtype": "int32", "transpose_B": True}
VARLEN = HOPPER_ATTENTION | {"group": 4, "is_causal": True}
CK_VARLEN = {"dim": 128, "group": 4, "is_causal": True, "threads": 256}
INT4_WEIGHTS = {"block_M": 256, "block_N": 128, "block_K": 64, "num_stages": 4, "threads": 256}
EPILOGUE = {"transpose_B": True, "bias": True, "activation": "gelu"}
GOLDEN = (
    Golden("cute/sm_80", "gemm_relu.py", style="cute"),
    Golden("cute/sm_80", "gemm.py", bindings=TRANSPOSED, style="cute"),
    Golden("cute/sm_80/int8", "gemm.py", bindings=INT8, style="cute"),
    Golden("cute/sm_80", "gemm_batched.py", style="cute"),
    Golden("cute/sm_80", "gemm_splitk.py", style="cute"),
    Golden("cute/sm_80", "vector_add.py", style="cute"),
    Golden("cute/sm_80", "cross_entropy.py", style="cute"),
    Golden("cute/sm_80", "flash_decoding.py", bindings={"dim": 128}, style="cute"),
    Golden("cute/sm_80", "row_softmax.py", style="cute"),
    Golden("cute/sm_80", "rmsnorm.py", bindings={"dim": 4096}, style="cute"),
    Golden("cute/sm_80", "attention.py", bindings={"is_causal": True}, style="cute"),
    Golden("cute/sm_80", "attention_varlen.py", bindings={"dim": 128, "group": 4, "is_causal": True}, style="cute"),
    Golden("ck/gfx942", "vector_add.py", "hip:gfx942", style="ck"),
    Golden("ck/gfx942", "row_softmax.py", "hip:gfx942", style="ck"),
    Golden("ck/gfx942", "gemm_relu.py", "hip:gfx942", {"threads": 256}, style="ck"),
    Golden("ck/gfx942", "attention.py", "hip:gfx942", {"threads": 256, "slack": 0, "is_causal": False}, style="ck"),
    Golden("ck/gfx942", "attention_varlen.py", "hip:gfx942", CK_VARLEN, style="ck"),
    Golden("ck/gfx942", "flash_decoding.py", "hip:gfx942", {"dim": 128}, style="ck"),
    Golden("ck/gfx942", "gemv.py", "hip:gfx942", style="ck"),
    Golden("ck/gfx942", "cross_entropy.py", "hip:gfx942", style="ck"),
    Golden("ck/gfx942", "w2a8.py", "hip:gfx942", style="ck"),
    Golden("ck/gfx942", "dequant.py", "hip:gfx942", style="ck"),
    Golden("ck/gfx942", "gemm_fp8_scaled.py", "hip:gfx942", {"dtype": "float8_e4m3fnuz", "parts": 1}, style="ck"),
    Golden("cute/sm_90a", "gemm_relu.py", "cuda:sm_90a", {"block_N": 256, "block_K": 64, "threads": 256}, "cute"),
    Golden("cute/sm_90a", "attention.py", "cuda:sm_90a", HOPPER_ATTENTION | {"is_causal": False}, "cute"),
    Golden("cute/sm_90a", "attention_varlen.py", "cuda:sm_90a", VARLEN, "cute"),
    Golden("cute/sm_90a", "gemm_batched.py", "cuda:sm_90a", {"block_K": 64}, "cute"),
    Golden("cute/sm_90a", "linear_int4.py", "cuda:sm_90a", INT4_WEIGHTS, "cute"),
    Golden("cute/sm_90a", "linear_int4_prefill.py", "cuda:sm_90a", style="cute"),
    Golden("cute/sm_90a", "w2a8.py", "cuda:sm_90a", style="cute"),
    Golden("cute/sm_90a", "dequant.py", "cuda:sm_90a", style="cute"),
    Golden("cute/sm_90a", "attention_block_sparse.py", "cuda:sm_90a", HOPPER_ATTENTION | {"is_causal": True}, "cute"),
    Golden("cute/sm_90a", "gemm_cluster.py", "cuda:sm_90a", style="cute"),
    Golden("cute/sm_90a", "mla_decode.py", "cuda:sm_90a", {"page_size": 64}, "cute"),
    Golden("cute/sm_90a", "gemm_clusters.py", "cuda:sm_90a", style="cute"),
    Golden("cute/sm_90a", "gemm_hybrid.py", "cuda:sm_90a", style="cute"),
    Golden("cuda/sm_80", "vector_add.py"),
    Golden("cuda/sm_80", "row_softmax.py"),
    Golden("cuda/sm_80", "gemm_relu.py"),
    Golden("cuda/sm_80", "gemm_relu_eager.py"),
    Golden("cuda/sm_80", "attention.py", bindings={"is_causal": False}),
    Golden("cuda/sm_80/causal", "attention.py", bindings={"is_causal": True}),
    Golden("cuda/sm_80/static", "gemm_relu.py", bindings={"M": 1024, "N": 1024, "K": 1024}),
    Golden("cuda/sm_80", "rmsnorm.py", bindings={"dim": 4096}),
    Golden("cuda/sm_80", "linear.py"),
    Golden("cuda/sm_80", "linear_int4.py", bindings={"gelu": True}),
    Golden("cuda/sm_80", "rope.py", bindings={"dim": 128}),
    Golden("cuda/sm_90a", "gemm_relu.py", "cuda:sm_90a", {"block_N": 256, "block_K": 64, "threads": 256}),
    Golden("cuda/sm_90a", "attention.py", "cuda:sm_90a", HOPPER_ATTENTION | {"is_causal": False}),
    Golden("cuda/sm_80", "attention_block_sparse.py", bindings={"dim": 128, "is_causal": True}),
    Golden("cuda/sm_90a", "attention_block_sparse.py", "cuda:sm_90a", HOPPER_ATTENTION | {"is_causal": True}),
    Golden("cuda/sm_80", "attention_varlen.py", bindings={"dim": 128, "group": 4, "is_causal": True}),
    Golden("cuda/sm_80/window", "attention.py", bindings={"dim": 128, "group": 4, "is_causal": True, "window": 128}),
    Golden("cuda/sm_80", "attention_backward.py", bindings={"dim": 64, "is_causal": True}),
    Golden(
        "cuda/sm_80",
        "flash_decoding.py",
        bindings={"dim": 128, "group": 8, "block_H": 16, "threads": 32, "zero_tail": True},
    ),
    Golden("cuda/sm_80", "mla_decode.py", bindings={"block_N": 32, "num_split": 4, "zero_tail": True}),
    Golden("cuda/sm_90a", "attention_varlen.py", "cuda:sm_90a", VARLEN),
    Golden("cuda/sm_90a", "dequant.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "w2a8.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "attention_backward.py", "cuda:sm_90a", {"dim": 64, "is_causal": True}),
    Golden("cuda/sm_90a", "mla_decode.py", "cuda:sm_90a", {"page_size": 64}),
    Golden("cuda/sm_90a", "flash_decoding.py", "cuda:sm_90a", {"dim": 128, "group": 8}),
    Golden("cuda/sm_80", "gemm.py", bindings=EPILOGUE),
    Golden("cuda/sm_80", "gemm_batched.py"),
    Golden("cuda/sm_80", "gemm_splitk.py"),
    Golden("cuda/sm_80", "dequant.py"),
    Golden("cuda/sm_80", "w2a8.py"),
    Golden("cuda/sm_80", "layernorm.py", bindings={"dim": 1024}),
    Golden("cuda/sm_80", "rmsnorm_silu.py", bindings={"dim": 160}),
    Golden("cuda/sm_80", "reduce_rows.py"),
    Golden("cuda/sm_80", "cross_entropy.py"),
    Golden("cuda/sm_80", "linear_attention.py", bindings={"dim": 64}),
    Golden("cuda/sm_90a", "gemm.py", "cuda:sm_90a", EPILOGUE | {"dtype": "bfloat16"}),
    Golden("cuda/sm_90a", "gemm_batched.py", "cuda:sm_90a", {"block_K": 64}),
    Golden("cuda/sm_90a", "gemm_persistent.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "gemm_hybrid.py", "cuda:sm_90a", {"block_M": 256, "block_N": 192, "panel": 8}),
    Golden("cuda/sm_90a", "gemm_fp8_scaled.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "gemm_splitk.py", "cuda:sm_90a", {"block_N": 256, "block_K": 64}),
    Golden("cuda/sm_90a", "gemm_few_rows.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "gemm_clusters.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "linear_attention.py", "cuda:sm_90a", {"dim": 64}),
    Golden("cuda/sm_90a", "chunk_scan.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "chunk_state.py", "cuda:sm_90a"),
    Golden("cuda/sm_90a", "linear_int4.py", "cuda:sm_90a", INT4_WEIGHTS),
    Golden("cuda/sm_90a", "linear_int4_prefill.py", "cuda:sm_90a"),
    Golden("cuda/sm_100a", "gemm_relu.py", "cuda:sm_100a", {"block_K": 64, "threads": 256}),
    Golden("hip/gfx942", "vector_add.py", "hip:gfx942"),
    Golden("hip/gfx942", "row_softmax.py", "hip:gfx942"),
    Golden("hip/gfx942", "gemm_relu.py", "hip:gfx942", {"threads": 256}),
    Golden("hip/gfx942", "attention.py", "hip:gfx942", CDNA_ATTENTION | {"is_causal": False}),
    Golden("hip/gfx942/causal", "attention.py", "hip:gfx942", CDNA_ATTENTION | {"is_causal": True}),
    Golden("cuda/sm_90a/causal", "attention.py", "cuda:sm_90a", HOPPER_ATTENTION | {"is_causal": True}),
)
