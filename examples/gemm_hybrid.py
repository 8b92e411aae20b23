"""GEMM in waves of whole tiles; tiles that would not fill the last wave are split along K (stream-K hybrid)."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_hybrid(
    M,
    N,
    K,
    programs=132,  # blocks of the persistent grid: one per SM of an H200
    least=48,  # minimum iterations that an even split must save: fewer do not pay for the parts' memory traffic
    panel=12,  # rows of tiles per rasterisation group
    block_M=128,
    block_N=256,
    block_K=64,
    num_stages=3,
    threads=256,
    strip=8,  # rows that a block of the second kernel reduces
    transpose_B=False,
    dtype="float16",
):
    """C = relu(A @ B). A second kernel adds the parts of a tile, always in the same order."""

    def cut_of(left, k_tiles):
        """How many tiles are split along K: none, if that saves little."""
        return T.if_then_else(k_tiles * (programs - left) >= least * programs, left, 0)

    @T.macro
    def part_of(cut, k_tiles):
        # Each split tile has `number` blocks of its own, with a part each; the other blocks take the remainders of
        # several tiles, about as many iterations. Where no tile is split nothing is divided: the division would delay
        # the first loads, 1 % of a single wave.
        own = T.if_then_else(cut > 0, programs // T.max(cut, 1), 0)
        others = programs - own * cut
        several = T.if_then_else(cut > 0, T.ceildiv(cut, T.max(others, 1)), 0)
        return T.if_then_else(cut > 0, T.ceildiv(k_tiles * several, own * several + T.min(others, 1)), 0)

    @T.macro
    def place_of(tile, rows, columns):
        # Grouped rasterisation: concurrent blocks share operands in L2. Every other group runs backwards, from
        # where the previous one ended.
        most = T.if_then_else(columns < panel, 2, panel)
        panels_before = tile // (most * columns)
        height = T.min(most, rows - panels_before * most)
        along = tile % (most * columns) // height
        return panels_before * most + tile % (most * columns) % height, T.if_then_else(
            panels_before % 2 == 0, along, columns - 1 - along
        )

    B_shape = (N, K) if transpose_B else (K, N)
    B_tile = (block_N, block_K) if transpose_B else (block_K, block_N)

    @T.prim_func
    def gemm_hybrid_kernel(A: T.Tensor((M, K), dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((M, N), dtype)):
        parts = T.alloc_global((2 * programs, block_M, block_N), "float32")

        # multiply
        # grid dims: (blocks)
        with T.Kernel(programs, threads=threads) as block:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)  # for K = 0; else a tile's first MMA overwrites it
            T.pdl_trigger()

            rows = T.ceildiv(M, block_M)
            columns = T.ceildiv(N, block_N)
            k_tiles = T.ceildiv(K, block_K)
            left = rows * columns % programs
            cut = cut_of(left, k_tiles)
            waves = T.ceildiv(rows * columns - cut, programs)
            part = part_of(cut, k_tiles)
            # Blocks with their tiles' first, second, ... parts work on the same K at the same time, as those of a
            # whole wave do: they share operands in L2.
            number = T.if_then_else(cut > 0, block // T.max(cut, 1), 0)
            takers = programs - number * cut  # of the parts with this number or a later one
            ends = T.if_then_else(cut > 0, T.ceildiv(cut, takers), 0)

            for wave in T.serial(waves + ends):
                whole = wave < waves
                place = block - number * cut + (wave - waves) * takers
                tile = T.if_then_else(whole, wave * programs + block, rows * columns - cut + place)
                start = T.if_then_else(whole, 0, number * part)
                count = T.if_then_else(whole, k_tiles, T.min(part, k_tiles - start))
                if tile < rows * columns and (whole or count > 0):
                    by, bx = place_of(tile, rows, columns)
                    # Every other wave iterates over K backwards: the previous wave's last tiles are still in L2.
                    back = whole and wave % 2 == 1
                    for ko in T.Pipelined(count, num_stages=num_stages):
                        k = T.if_then_else(back, count - 1 - ko, start + ko)
                        T.copy(A[by * block_M, k * block_K], A_shared)
                        if transpose_B:
                            T.copy(B[bx * block_N, k * block_K], B_shared)
                        else:
                            T.copy(B[k * block_K, bx * block_N], B_shared)
                        T.gemm(A_shared, B_shared, C_local, transpose_B=transpose_B, clear_accum=ko == 0)
                    if not whole:
                        T.copy(C_local, parts[number * cut + place, 0, 0])
                    # Fused ReLU: C is stored once. Not in a branch, in which ptxas 12.4 would serialise the
                    # wgmmas (C7515).
                    for i, j in T.Parallel(block_M, block_N):
                        C_local[i, j] = T.max(C_local[i, j], 0)
                    if whole:
                        T.copy(C_local, C[by * block_M, bx * block_N])

        # add
        # grid dims: (rows of the cut tiles, `strip` at a time)
        strips = block_M // strip
        left = T.ceildiv(M, block_M) * T.ceildiv(N, block_N) % programs
        with T.Kernel(cut_of(left, T.ceildiv(K, block_K)) * strips, threads=128) as index:
            total = T.alloc_fragment((strip, block_N), "float32")

            rows = T.ceildiv(M, block_M)
            columns = T.ceildiv(N, block_N)
            k_tiles = T.ceildiv(K, block_K)
            cut = rows * columns % programs
            number = index // strips
            row = index % strips * strip
            by, bx = place_of(rows * columns - cut + number, rows, columns)
            part = part_of(cut, k_tiles)

            T.clear(total)
            T.pdl_sync()
            for each in T.serial(T.ceildiv(k_tiles, part)):
                for i, j in T.Parallel(strip, block_N):
                    total[i, j] += parts[each * cut + number, row + i, j]
            for i, j in T.Parallel(strip, block_N):
                total[i, j] = T.max(total[i, j], 0)
            T.copy(total, C[by * block_M + row, bx * block_N])

    return gemm_hybrid_kernel
