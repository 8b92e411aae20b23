"""What the kernels are asked to do on a GPU: inputs, torch's ways to compute the same, and exact references."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product

import peers
import torch

# (M, N, K): the matrix products of PEERS.md, and two round ones.
GEMMS = {
    "M0": (4096, 1024, 8192), "M1": (4096, 8192, 8192), "M2": (4096, 28672, 8192), "M3": (4096, 8192, 28672),
    "M4": (8192, 1024, 8192), "M5": (8192, 8192, 8192), "M6": (8192, 28672, 8192), "M7": (8192, 8192, 28672),
    "1024": (1024, 1024, 1024), "4096": (4096, 4096, 4096),
}  # fmt: skip
# (M, N, K) of layers whose weights are float8 with a scale for each 128 x 128 block
SCALED = {
    "S0": (4096, 7168, 2048), "S1": (4096, 4096, 7168), "S2": (8192, 8192, 8192),
    "S3": (128, 7168, 2048), "S4": (128, 4096, 7168), "S5": (32, 7168, 2048),
}  # fmt: skip
# (batch, M, N, K)
BATCHES = {
    "B0": (16, 2048, 2048, 2048), "B1": (64, 1024, 1024, 1024),
    "B2": (32, 4096, 1024, 1024), "B3": (4, 8192, 4096, 4096),
}  # fmt: skip
# (rows, groups, N, K): experts of a layer, with as many rows as come to each
GROUPS = {"G0": (8192, 8, 4096, 4096), "G1": (16384, 64, 2048, 4096), "G2": (32768, 16, 4096, 2048)}
# (batch, heads, sequence, dim, causal)
ATTENTIONS = {
    "FA0": (1, 32, 512, 128, True), "FA1": (1, 32, 512, 128, False), "FA2": (1, 32, 1024, 128, True),
    "FA3": (1, 32, 1024, 128, False), "FA4": (1, 32, 4096, 128, True), "FA4n": (1, 32, 4096, 128, False),
    "L8k_causal": (4, 32, 8192, 128, True), "L8k_full": (4, 32, 8192, 128, False),
}  # fmt: skip
# (side of a block, percent of the blocks that are kept, causal) of 32 heads, 8192 tokens and 128 dimensions
BLOCK_SPARSE = {
    f"{side}_{kept}{'_causal' * causal}": (side, kept, causal)
    for side, kept, causal in product((128, 64), (100, 25, 5), (True, False))
}
# (batch, heads, keys, latent dim, dim of positions)
MLAS = {"MLA_b64": (64, 128, 8192, 512, 64), "MLA_b128": (128, 128, 8192, 512, 64)}
# (N, K) of a matrix that meets one vector: PEERS.md
GEMVS = {
    "V0": (16384, 16384), "V1": (43008, 14336), "V2": (14336, 14336), "V3": (57344, 14336), "V4": (14336, 57344),
    "V5": (9216, 9216), "V6": (36864, 9216), "V7": (9216, 36864),
}  # fmt: skip
# (batch, heads, sequence) of Mamba-2 with heads of 64, a state of 128 and chunks of 256
MAMBAS = {
    "0": (1, 64, 1024), "1": (1, 64, 2048), "2": (1, 64, 8192),
    "3": (64, 64, 1024), "4": (64, 64, 2048), "5": (64, 64, 8192),
}  # fmt: skip
VECTORS = {"add_16M": 4096 * 4096, "add_64M": 8192 * 8192}
SOFTMAXES = {"softmax_8192x1000": (8192, 1000), "softmax_65536x1000": (65536, 1000), "softmax_8192x8192": (8192, 8192)}
# (rows, channels) of norms
NORMS = {
    f"norm_{rows}x{channels}": (rows, channels)
    for rows in (8192, 65536)
    for channels in (160, 256, 320, 512, 640, 1024, 2048, 4096, 8192)
}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Inputs on the GPU, an output to write, torch's ways to compute it, and what they are judged by.

    `flops` or `bytes_moved` (each input and output once) count the work of one call. `tolerance` bounds the error's
    norm relative to the reference's norm. `others`: further outputs, and what they are compared with.
    """

    suite: str
    name: str
    inputs: list[torch.Tensor]
    output: torch.Tensor
    peers: Mapping[str, Callable[[], torch.Tensor]]
    reference: torch.Tensor
    bindings: Mapping[str, object] = field(default_factory=dict)
    flops: float = 0.0
    bytes_moved: float = 0.0
    tolerance: float = 1e-2
    others: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    @property
    def tensors(self) -> list[torch.Tensor]:
        """What a launcher takes, in its order."""
        return [*self.inputs, self.output, *(output for output, _ in self.others)]

    def error(self) -> float:
        """Of the outputs as they are now, the worst."""
        pairs = [(self.output, self.reference), *self.others]
        return max(relative_error(*pair) for pair in pairs)

    def rate(self, ms: float) -> str:
        """Work a second, as people quote it."""
        return f"{self.flops / ms * 1e-9:7.1f} TF/s" if self.flops else f"{self.bytes_moved / ms * 1e-6:7.0f} GB/s"


def relative_error(got: torch.Tensor, reference: torch.Tensor) -> float:
    """The norm of the difference over the reference's, in double precision; a part at a time, since some are large."""
    parts = zip(got.flatten().split(1 << 28), reference.flatten().split(1 << 28), strict=True)
    norms = torch.stack([torch.stack([(a.double() - b.double()).norm(), b.double().norm()]) for a, b in parts])
    difference, size = norms.norm(dim=0).tolist()
    return difference / max(size, 1e-30) if math.isfinite(difference) else float("inf")


def normal(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)


def gemms() -> Iterator[Workload]:
    """relu(A @ B). The peers, cuBLAS and Triton, leave the ReLU out, for which cuBLAS would need a second kernel."""
    for name, (m, n, k) in GEMMS.items():
        a, b = normal(m, k), normal(k, n)
        bt = b.t().contiguous().t()
        cublas = {"cublas/NN": lambda a=a, b=b: a @ b, "cublas/NT": lambda a=a, bt=bt: a @ bt}
        yield Workload(
            suite="gemm",
            name=name,
            inputs=[a, b],
            output=torch.empty(m, n, device="cuda", dtype=torch.float16),
            peers=cublas | peers.matmuls(a, b, bt.t()),
            reference=torch.relu(a.float() @ b.float()),
            flops=2.0 * m * n * k,
        )


def gemms_8bit() -> Iterator[Workload]:
    """A @ B^T of 8-bit operands, as examples/gemm.py has it. The peers are cuBLAS through torch's own entries."""
    one = torch.ones((), device="cuda")
    for name, (m, n, k) in GEMMS.items():
        a, b = normal(m, k, dtype=torch.float8_e4m3fn), normal(n, k, dtype=torch.float8_e4m3fn)

        def scaled(a: torch.Tensor = a, b: torch.Tensor = b) -> torch.Tensor:
            return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

        yield Workload(
            suite="gemm",
            name=f"{name}/e4m3",
            inputs=[a, b],
            output=torch.empty(m, n, device="cuda", dtype=torch.bfloat16),
            peers={"cublas/scaled_mm": scaled},
            reference=a.float() @ b.float().T,
            flops=2.0 * m * n * k,
        )
        a, b = (torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8) for shape in ((m, k), (n, k)))
        yield Workload(
            suite="gemm",
            name=f"{name}/int8",
            inputs=[a, b],
            output=torch.empty(m, n, device="cuda", dtype=torch.int32),
            peers={"cublas/int_mm": lambda a=a, b=b: torch._int_mm(a, b.t())},
            reference=torch._int_mm(a, b.t()),
            flops=2.0 * m * n * k,
            tolerance=0.0,
        )


def scaled_gemms() -> Iterator[Workload]:
    """A @ B^T of float8, with a scale for 1 x 128 elements of A and for 128 x 128 of B. The peers: cuBLAS, Triton."""
    for name, (m, n, k) in SCALED.items():
        a, b = normal(m, k, dtype=torch.float8_e4m3fn), normal(n, k, dtype=torch.float8_e4m3fn)
        scales_a = torch.rand(m, k // 128, device="cuda") + 0.5
        scales_b = torch.rand(-(-n // 128), k // 128, device="cuda") + 0.5
        columns_a = scales_a.t().contiguous().t()  # as cuBLAS wants them

        def cublas(
            a: torch.Tensor = a, b: torch.Tensor = b, first: torch.Tensor = columns_a, second: torch.Tensor = scales_b
        ) -> torch.Tensor:
            return torch._scaled_mm(a, b.t(), scale_a=first, scale_b=second.t(), out_dtype=torch.bfloat16)

        whole_a = a.float() * scales_a.repeat_interleave(128, 1)
        whole_b = b.float() * scales_b.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)
        yield Workload(
            suite="gemm_fp8_scaled",
            name=name,
            inputs=[a, b, scales_a, scales_b],
            output=torch.empty(m, n, device="cuda", dtype=torch.bfloat16),
            peers={"cublas/scaled_mm": cublas} | peers.scaled_matmuls(a, b, scales_a, scales_b),
            reference=whole_a @ whole_b.T,
            flops=2.0 * m * n * k,
        )


def batched_gemms() -> Iterator[Workload]:
    """A[b] @ B[b] in bfloat16. The peer is cuBLAS."""
    for name, (batch, m, n, k) in BATCHES.items():
        a, b = normal(batch, m, k, dtype=torch.bfloat16), normal(batch, k, n, dtype=torch.bfloat16)
        yield Workload(
            suite="gemm_batched",
            name=name,
            inputs=[a, b],
            output=torch.empty(batch, m, n, device="cuda", dtype=torch.bfloat16),
            peers={"cublas/bmm": lambda a=a, b=b: torch.bmm(a, b)},
            reference=torch.bmm(a.float(), b.float()),
            flops=2.0 * batch * m * n * k,
        )


def grouped_gemms() -> Iterator[Workload]:
    """Rows that are sorted into groups times their group's matrix, in bfloat16.

    The peers: torch's grouped product, and cuBLAS, a group at a time.
    """
    for name, (rows, groups, n, k) in GROUPS.items():
        a, b = normal(rows, k, dtype=torch.bfloat16), normal(groups, k, n, dtype=torch.bfloat16)
        cuts = torch.sort(torch.randperm(rows - 1, device="cuda")[: groups - 1] + 1).values.int()
        ends = torch.cat([cuts, cuts.new_full((1,), rows)])
        offsets = torch.cat([cuts.new_zeros(1), ends])
        places = list(pairwise(offsets.tolist()))

        def loop(a: torch.Tensor = a, b: torch.Tensor = b, places: list[tuple[int, int]] = places) -> torch.Tensor:
            out = torch.empty(a.shape[0], b.shape[2], device="cuda", dtype=a.dtype)
            for group, (first, end) in enumerate(places):
                torch.mm(a[first:end], b[group], out=out[first:end])
            return out

        yield Workload(
            suite="gemm_grouped",
            name=name,
            inputs=[a, b, offsets],
            output=torch.empty(rows, n, device="cuda", dtype=torch.bfloat16),
            peers={
                "torch/grouped_mm": lambda a=a, b=b, ends=ends: torch._grouped_mm(a, b, offs=ends),
                "cublas, one by one": loop,
            },
            reference=torch.cat([a[first:end].float() @ b[i].float() for i, (first, end) in enumerate(places)]),
            flops=2.0 * rows * n * k,
        )


def packed_weights(n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random bytes, (n, k // 2), and the two nibbles of each, the lower first, (n, k)."""
    packed = torch.randint(0, 256, (n, k // 2), device="cuda", dtype=torch.uint8)
    return packed, torch.stack([packed & 15, packed >> 4], dim=-1).reshape(n, k)


def products_of_4_bits(suite: str, weights: str, decode: Callable[[torch.Tensor], torch.Tensor]) -> Iterator[Workload]:
    """X @ W^T with weights of 4 bits and a scale for 32 of them. The peer, cuBLAS, has the weights in half already."""
    for name, (m, n, k) in GEMMS.items():
        x, scales = normal(m, k), normal(n, k // 32) * 0.1
        packed, nibbles = packed_weights(n, k)
        decoded = decode(nibbles) * scales.repeat_interleave(32, dim=1)
        yield Workload(
            suite=suite,
            name=name,
            inputs=[x, packed, scales],
            output=torch.empty(m, n, device="cuda", dtype=torch.float16),
            peers={"cublas on half": lambda x=x, decoded=decoded: x @ decoded.t()},
            reference=x.float() @ decoded.float().T,
            bindings={"weights": weights},
            flops=2.0 * m * n * k,
        )


def int4_linears() -> Iterator[Workload]:
    return products_of_4_bits("linear_int4", "int4", lambda nibbles: nibbles.half() - 8)


def fp4_products(suite: str) -> Iterator[Workload]:
    """Weights in fp4 (e2m1)."""
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device="cuda", dtype=torch.float16)
    values = torch.cat([values, -values])
    return products_of_4_bits(suite, "fp4", lambda nibbles: values[nibbles.int()])


def int4_gemvs() -> Iterator[Workload]:
    """W4A16: a scale and a zero for 32 weights or 128, or a scale a row. cuBLAS, on halves, reads four times the bytes.

    GB/s count packed weights alone.
    """
    yield from int4_gemvs_of_rows()
    kinds = ((32, torch.float16), (128, torch.uint8), (32, torch.uint8))
    for (name, (n, k)), (group, zero_dtype) in product(GEMVS.items(), kinds):
        x, scales = normal(1, k), torch.rand(n, k // group, device="cuda").half() * 0.09 + 0.01
        zeros = torch.randint(0, 16, scales.shape, device="cuda").to(zero_dtype)
        packed, nibbles = packed_weights(n, k)
        scale, zero = (each.half().repeat_interleave(group, dim=1) for each in (scales, zeros))
        weights = (nibbles.half() - zero) * scale
        yield Workload(
            suite="dequant_gemv",
            name=f"W4A16_{name}/group{group}/{str(zero_dtype).removeprefix('torch.')}",
            inputs=[x, packed, scales, zeros],
            output=torch.empty(1, n, device="cuda", dtype=torch.float16),
            peers={"cublas on half": lambda x=x, weights=weights: x @ weights.t()},
            reference=x.float() @ weights.float().T,
            bytes_moved=float(packed.numel()),
        )


def int4_gemvs_of_rows() -> Iterator[Workload]:
    """W4A16 with a scale a row, and zeros of 8."""
    for name, (n, k) in GEMVS.items():
        x, scales = normal(1, k), torch.rand(n, device="cuda").half() * 0.09 + 0.01
        packed, nibbles = packed_weights(n, k)
        weights = (nibbles.half() - 8) * scales[:, None]
        yield Workload(
            suite="dequant_gemv",
            name=f"W4A16_{name}/row",
            inputs=[x, packed, scales],
            output=torch.empty(1, n, device="cuda", dtype=torch.float16),
            peers={"cublas on half": lambda x=x, weights=weights: x @ weights.t()},
            reference=x.float() @ weights.float().T,
            bytes_moved=float(packed.numel()),
        )


def ternary_gemvs() -> Iterator[Workload]:
    """W2A8, exact in integers. The peer, cuBLAS on halves, reads eight times the bytes; GB/s count packed ones."""
    for name, (n, k) in GEMVS.items():
        x = torch.randint(-128, 128, (1, k), device="cuda", dtype=torch.int8)
        weights = torch.randint(0, 3, (n, k // 4, 4), device="cuda", dtype=torch.uint8)
        packed = weights[..., 0] | weights[..., 1] << 2 | weights[..., 2] << 4 | weights[..., 3] << 6
        halves_x, halves = x.half(), weights.reshape(n, k).half() - 1
        yield Workload(
            suite="w2a8_gemv",
            name=f"W2A8_{name}",
            inputs=[x, packed],
            output=torch.empty(1, n, device="cuda", dtype=torch.int32),
            peers={"cublas on half": lambda halves_x=halves_x, halves=halves: halves_x @ halves.t()},
            reference=x.double() @ halves.double().T,
            bytes_moved=float(packed.numel()),
            tolerance=0.0,
        )


def norms() -> Iterator[Workload]:
    """RMSNorm with weights. The peers: torch's, what torch.compile makes of it, and a plain Triton kernel."""
    for name, (rows, channels) in NORMS.items():
        for dtype, bits in ((torch.float16, 16), (torch.float32, 32)):
            x, w = normal(rows, channels, dtype=dtype), normal(channels, dtype=dtype)
            exact = x.double() * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + 1e-5) * w.double()
            yield Workload(
                suite="rmsnorm",
                name=f"{name}/f{bits}",
                inputs=[x, w],
                output=torch.empty_like(x),
                peers={
                    "torch": lambda x=x, w=w: torch.nn.functional.rms_norm(x, w.shape, w, 1e-5),
                    **peers.rms_norms(x, w, 1e-5),
                },
                reference=exact,
                bytes_moved=2.0 * x.numel() * x.element_size(),
                tolerance=2e-3,
            )


def layer_norms() -> Iterator[Workload]:
    for name, (rows, channels) in NORMS.items():
        x, w, b = normal(rows, channels), normal(channels), normal(channels)
        exact = x.double()
        mean, variance = exact.mean(-1), exact.var(-1, correction=0)
        rstd = torch.rsqrt(variance + 1e-5)

        def torchs(x: torch.Tensor = x, w: torch.Tensor = w, b: torch.Tensor = b) -> torch.Tensor:
            return torch.ops.aten.native_layer_norm(x, w.shape, w, b, 1e-5)[0]

        yield Workload(
            suite="layernorm",
            name=name,
            inputs=[x, w, b],
            output=torch.empty_like(x),
            others=[(torch.empty(rows, device="cuda"), mean), (torch.empty(rows, device="cuda"), rstd)],
            peers={"torch": torchs},
            reference=(exact - mean[:, None]) * rstd[:, None] * w.double() + b.double(),
            bytes_moved=2.0 * x.numel() * x.element_size(),
            tolerance=2e-3,
        )


def latent_attentions() -> Iterator[Workload]:
    """MLA decode: one query a sequence, 128 heads of 512 + 64 on a latent cache. The peer computes it with matmuls."""
    for name, (batch, heads, keys, dim, rope) in MLAS.items():
        q, q_pe = normal(batch, heads, dim), normal(batch, heads, rope)
        kv, k_pe = normal(batch, keys, dim), normal(batch, keys, rope)

        def matmuls(
            q: torch.Tensor = q, q_pe: torch.Tensor = q_pe, kv: torch.Tensor = kv, k_pe: torch.Tensor = k_pe
        ) -> torch.Tensor:
            scores = torch.bmm(q, kv.transpose(1, 2)) + torch.bmm(q_pe, k_pe.transpose(1, 2))
            return torch.bmm((scores * (q.shape[-1] + q_pe.shape[-1]) ** -0.5).softmax(-1), kv)

        scores = [
            (q[i].float() @ kv[i].float().T + q_pe[i].float() @ k_pe[i].float().T) * (dim + rope) ** -0.5
            for i in range(batch)
        ]
        yield Workload(
            suite="mla_decode",
            name=name,
            inputs=[q, q_pe, kv, k_pe, torch.full((batch,), keys, device="cuda", dtype=torch.int32)],
            output=torch.empty_like(q),
            peers={"torch/bmm": matmuls},
            reference=torch.stack([each.softmax(-1) @ kv[i].float() for i, each in enumerate(scores)]),
            flops=2.0 * batch * heads * keys * (2 * dim + rope),
        )


def exact_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """In float32, one head of one batch at a time. Shapes: (batch, sequence, heads, dim)."""
    out = torch.empty(q.shape, device="cuda", dtype=torch.float32)
    seen = torch.ones(q.shape[1], k.shape[1], device="cuda", dtype=torch.bool).tril()
    for batch in range(q.shape[0]):
        for head in range(q.shape[2]):
            one_q, one_k, one_v = (x[batch, :, head].float() for x in (q, k, v))
            scores = one_q @ one_k.T * q.shape[-1] ** -0.5
            if causal:
                scores.masked_fill_(~seen, float("-inf"))
            out[batch, :, head] = scores.softmax(-1) @ one_v
    return out


def attentions() -> Iterator[Workload]:
    """Attention forward. The peer, cuDNN through torch, gets contiguous (batch, heads, sequence, dim)."""
    for name, (batch, heads, sequence, dim, causal) in ATTENTIONS.items():
        q, k, v = (normal(batch, sequence, heads, dim) for _ in range(3))
        swapped = [x.transpose(1, 2).contiguous() for x in (q, k, v)]

        def cudnn(swapped: list[torch.Tensor] = swapped, causal: bool = causal) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(*swapped, is_causal=causal).transpose(1, 2)

        yield Workload(
            suite="attention",
            name=name,
            inputs=[q, k, v],
            output=torch.empty_like(q),
            peers={"torch/cudnn": cudnn},
            reference=exact_attention(q, k, v, causal),
            bindings={"causal": causal},
            flops=4.0 * batch * heads * sequence * sequence * dim * (0.5 if causal else 1.0),
        )


def gemvs() -> Iterator[Workload]:
    for name, (n, k) in GEMVS.items():
        a, b = normal(k), normal(n, k)
        yield Workload(
            suite="gemv",
            name=name,
            inputs=[a, b],
            output=torch.empty(n, device="cuda", dtype=torch.float16),
            peers={"cublas": lambda a=a, b=b: b @ a},
            reference=b.float() @ a.float(),
            bytes_moved=2.0 * n * k,
        )


def decays(batch: int, heads: int, chunks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """dt, and the running sum of dt * A along each chunk of 256. Shapes: (batch, heads, chunks, 256)."""
    dt = torch.rand(batch, heads, chunks, 256, device="cuda") * 0.4 + 0.1
    return dt.half(), (-torch.cumsum(torch.rand_like(dt) * 0.01, -1)).half()


def chunk_states() -> Iterator[Workload]:
    for name, (batch, heads, sequence) in MAMBAS.items():
        chunks = sequence // 256
        b, x = normal(batch, sequence, 1, 128), normal(batch, sequence, heads, 64)
        dt, decay = decays(batch, heads, chunks)
        scale = dt.float() * torch.exp(decay.float()[..., -1:] - decay.float())
        scaled = x.float().view(batch, chunks, 256, heads, 64) * scale.permute(0, 2, 3, 1)[..., None]
        states = torch.einsum("bctn,bcthp->bchpn", b.float().view(batch, chunks, 256, 128), scaled)
        yield Workload(
            suite="chunk_state",
            name=f"CT{name}",
            inputs=[b, x, dt, decay],
            output=torch.empty_like(states, dtype=torch.float16),
            peers={},
            reference=states,
            bytes_moved=2.0 * (b.numel() + x.numel() + 2 * dt.numel() + states.numel()),
        )


def chunk_scans() -> Iterator[Workload]:
    for name, (batch, heads, sequence) in MAMBAS.items():
        chunks = sequence // 256
        cb, x, c = (
            normal(batch, chunks, 1, 256, 256),
            normal(batch, sequence, heads, 64),
            normal(batch, sequence, 1, 128),
        )
        states, d = normal(batch, chunks, heads, 64, 128), normal(heads)
        dt, decay = decays(batch, heads, chunks)
        y = torch.empty(batch, chunks, 256, heads, 64, device="cuda", dtype=torch.float32)
        seen = torch.ones(256, 256, device="cuda", dtype=torch.bool).tril()
        tokens, sums = x.float().view(batch, chunks, 256, heads, 64), decay.float()
        for one in range(batch):  # the weights of all would not fit
            falls = torch.exp((sums[one, :, :, :, None] - sums[one, :, :, None, :]).masked_fill(~seen, float("-inf")))
            weights = falls * dt[one].float()[:, :, None, :] * cb[one, :, 0].float()
            y[one] = torch.einsum("hcmt,cthp->cmhp", weights, tokens[one])
            before = torch.einsum("cmn,chpn->cmhp", c[one, :, 0].float().view(chunks, 256, 128), states[one].float())
            y[one] += before * torch.exp(sums[one]).permute(1, 2, 0)[..., None] + tokens[one] * d.float()[:, None]
        yield Workload(
            suite="chunk_scan",
            name=f"CC{name}",
            inputs=[cb, x, dt, decay, c, states, d],
            output=torch.empty_like(x),
            peers={},
            reference=y.view(x.shape),
            bytes_moved=2.0 * (cb.numel() + 2 * x.numel() + 2 * dt.numel() + c.numel() + states.numel()),
        )


def block_sparse_attentions() -> Iterator[Workload]:
    """Blocks are kept at random, and in each row the first and that of the diagonal. The peer masks what they drop."""
    q, k, v = (normal(1, 32, 8192, 128) for _ in range(3))
    for name, (side, percent, causal) in BLOCK_SPARSE.items():
        kept = torch.rand(1, 32, 8192 // side, 8192 // side, device="cuda") < percent / 100
        kept |= torch.eye(8192 // side, device="cuda", dtype=torch.bool)
        kept[..., 0] = True
        kept = kept.tril() if causal else kept
        seen = kept.repeat_interleave(side, 2).repeat_interleave(side, 3)
        seen = seen.tril() if causal else seen
        reference = torch.empty(q.shape, device="cuda")
        for head in range(32):
            scores = q[0, head].float() @ k[0, head].float().T * 128**-0.5
            reference[0, head] = scores.masked_fill(~seen[0, head], -math.inf).softmax(-1) @ v[0, head].float()
        masked = partial(torch.nn.functional.scaled_dot_product_attention, q, k, v, attn_mask=seen)
        yield Workload(
            suite="attention_block_sparse",
            name=name,
            inputs=[q, k, v, kept],
            output=torch.empty_like(q),
            peers={"torch/masked": masked},
            reference=reference,
            bindings={"causal": causal},
            flops=4.0 * 128 * seen.sum().item(),
        )


def vector_adds() -> Iterator[Workload]:
    for name, n in VECTORS.items():
        a, b = normal(n, dtype=torch.float32), normal(n, dtype=torch.float32)
        yield Workload(
            suite="vector_add",
            name=name,
            inputs=[a, b],
            output=torch.empty_like(a),
            peers={"torch/add": lambda a=a, b=b: a + b},
            reference=a + b,
            bytes_moved=12.0 * n,
            tolerance=1e-6,
        )


def softmaxes() -> Iterator[Workload]:
    for name, (rows, columns) in SOFTMAXES.items():
        x = normal(rows, columns, dtype=torch.float32)
        yield Workload(
            suite="row_softmax",
            name=name,
            inputs=[x],
            output=torch.empty_like(x),
            peers={"torch/softmax": lambda x=x: torch.softmax(x, -1)},
            reference=torch.softmax(x.double(), -1),
            bytes_moved=8.0 * rows * columns,
            tolerance=1e-5,
        )


SUITES = {
    "gemm": gemms,
    "gemm_8bit": gemms_8bit,
    "gemm_fp8_scaled": scaled_gemms,
    "gemm_batched": batched_gemms,
    "gemm_grouped": grouped_gemms,
    "linear_int4": int4_linears,
    "linear_fp4": partial(fp4_products, "linear_int4_prefill"),
    "dequant_gemm": partial(fp4_products, "dequant_gemm"),
    "dequant_gemv": int4_gemvs,
    "w2a8_gemv": ternary_gemvs,
    "rmsnorm": norms,
    "layernorm": layer_norms,
    "attention": attentions,
    "attention_block_sparse": block_sparse_attentions,
    "mla_decode": latent_attentions,
    "gemv": gemvs,
    "chunk_state": chunk_states,
    "chunk_scan": chunk_scans,
    "vector_add": vector_adds,
    "row_softmax": softmaxes,
}
