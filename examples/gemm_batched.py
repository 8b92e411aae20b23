"""Batched GEMM (matrices of one size) and grouped GEMM (rows sorted into groups, each with its own B)."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_batched(
    batch,
    M,
    N,
    K,
    programs=132,  # blocks of the persistent grid: one per SM of an H200
    panel=12,  # rows of tiles per rasterisation group
    block_M=128,
    block_N=128,
    block_K=32,
    num_stages=3,
    threads=256,
    dtype="float16",
):
    """C[b] = A[b] @ B[b]."""
    accum_dtype = "float32"

    @T.prim_func
    def gemm_batched_kernel(
        A: T.Tensor((batch, M, K), dtype), B: T.Tensor((batch, K, N), dtype), C: T.Tensor((batch, M, N), dtype)
    ):
        with T.Kernel(programs, threads=threads) as block:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)  # for K = 0; else a tile's first MMA overwrites it

            rows = T.ceildiv(M, block_M)
            columns = T.ceildiv(N, block_N)
            for wave in T.serial(T.ceildiv(batch * rows * columns, programs)):
                tile = wave * programs + block
                if tile < batch * rows * columns:
                    b = tile // (rows * columns)
                    # Grouped rasterisation, so that concurrent blocks share operands in L2.
                    start = tile % (rows * columns) // (panel * columns) * panel
                    place = tile % (rows * columns) % (panel * columns)
                    height = T.min(panel, rows - start)
                    by = start + place % height
                    bx = place // height
                    for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                        T.copy(A[b, by * block_M, ko * block_K], A_shared)
                        T.copy(B[b, ko * block_K, bx * block_N], B_shared)
                        T.gemm(A_shared, B_shared, C_local, clear_accum=ko == 0)
                    T.copy(C_local, C[b, by * block_M, bx * block_N])

    return gemm_batched_kernel


@tilelang.jit(out_idx=[-1])
def gemm_grouped(
    tokens, groups, N, K, block_M=64, block_N=128, block_K=32, num_stages=3, threads=128, dtype="float16"
):
    """C[t] = A[t] @ B[g], where rows Offsets[g] to Offsets[g + 1] of A belong to group g, as tokens do to experts.

    Offsets starts with 0 and ends with the number of rows.
    """
    accum_dtype = "float32"

    @T.prim_func
    def gemm_grouped_kernel(
        A: T.Tensor((tokens, K), dtype),
        B: T.Tensor((groups, K, N), dtype),
        Offsets: T.Tensor((groups + 1,), "int32"),
        C: T.Tensor((tokens, N), dtype),
    ):
        # The last block of each group may be partial.
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(tokens, block_M) + groups, threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            # The group that this block belongs to, and the block's rows: none for the last blocks.
            group = T.alloc_var("int32", init=0)
            first = T.alloc_var("int32", init=0)
            end = T.alloc_var("int32", init=0)
            blocks = T.alloc_var("int32", init=0)
            for g in T.serial(groups):
                ours = T.ceildiv(Offsets[g + 1] - Offsets[g], block_M)
                if by >= blocks and by < blocks + ours:
                    group = g
                    first = Offsets[g] + (by - blocks) * block_M
                    end = Offsets[g + 1]
                blocks += ours

            T.clear(C_local)
            for ko in T.Pipelined(T.if_then_else(first < end, T.ceildiv(K, block_K), 0), num_stages=num_stages):
                T.copy(A[first, ko * block_K], A_shared)
                T.copy(B[group, ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            # Rows past the group's last belong to the next group: computed, but not stored.
            if first <= end - block_M:
                T.copy(C_local, C[first, bx * block_N])
            else:
                for i, j in T.Parallel(block_M, block_N):
                    if first + i < end:
                        C[first + i, bx * block_N + j] = C_local[i, j]

    return gemm_grouped_kernel
