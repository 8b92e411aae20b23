"""GEMM: data-parallel full waves, and split-K for the tiles of a last partial wave."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_hybrid(
    M,
    N,
    K,
    programs=132,  # blocks, one per SM of an H200; on fewer SMs some wait for a free one, and the result is the same
    min_saved_iterations=48,  # tiles are split along K where that saves a block so many iterations: parts cost traffic
    panel=12,  # rows of tiles per rasterisation group, which has 2 rows where there are fewer columns than `panel`
    block_M=128,
    block_N=256,
    block_K=64,
    num_stages=3,
    threads=256,
    strip=8,  # rows that a block of the second kernel reduces
    transpose_B=False,
    dtype="float16",
):
    """C = relu(A @ B). Tiles of a last partial wave may be split along K.

    A second kernel adds the parts of such a tile, always in the same order.
    """

    assert block_M % strip == 0, "strips cover a tile"

    def split_tiles_of(tail_tiles, k_tiles):
        """How many tiles are split along K: those of the last wave, or none if even an ideal split saves little."""
        return T.if_then_else(k_tiles * (programs - tail_tiles) >= min_saved_iterations * programs, tail_tiles, 0)

    @T.macro
    def k_tiles_per_part_of(split_tiles, k_tiles):
        # Whole waves are data-parallel, the tiles of a last partial wave are split along K. A split tile has
        # parts_per_tile blocks of its own, each with at most k_tiles_per_part iterations; the remaining ones are its
        # last part, which one of the spare_programs blocks computes, for tiles_per_spare tiles at most. With 56 split
        # tiles, 132 blocks and 128 iterations: 2 x 56 blocks compute the iterations 0 to 54 and 55 to 109 of a tile, 20
        # spare blocks 110 to 127 of 2 or 3 tiles. Skipped where no tile is split, as divisions are slow.
        parts_per_tile = T.if_then_else(split_tiles > 0, programs // T.max(split_tiles, 1), 0)
        spare_programs = programs - parts_per_tile * split_tiles
        tiles_per_spare = T.if_then_else(split_tiles > 0, T.ceildiv(split_tiles, T.max(spare_programs, 1)), 0)
        return T.if_then_else(
            split_tiles > 0,
            T.ceildiv(k_tiles * tiles_per_spare, T.max(T.min(spare_programs, 1) + parts_per_tile * tiles_per_spare, 1)),
            0,
        )

    @T.macro
    def place_of(tile, rows, columns):
        # Tiles are numbered in groups of rows, so that concurrent blocks of multiply share operands in L2. Every other
        # group runs backwards, from where the previous one ended.
        group_rows = T.if_then_else(columns < panel, 2, panel)
        group = tile // (group_rows * columns)
        rows_in_group = T.min(group_rows, rows - group * group_rows)
        step = tile % (group_rows * columns) // rows_in_group
        mirrored = T.max(columns - 1 - step, 0)  # never below 0: max proves it, for the TMA stores of multiply
        return group * group_rows + tile % (group_rows * columns) % rows_in_group, T.if_then_else(
            group % 2 == 0, step, mirrored
        )

    B_shape = (N, K) if transpose_B else (K, N)
    B_tile = (block_N, block_K) if transpose_B else (block_K, block_N)

    @T.prim_func
    def gemm_hybrid_kernel(A: T.Tensor((M, K), dtype), B: T.Tensor(B_shape, dtype), C: T.Tensor((M, N), dtype)):
        # parts of split tiles; none where no tile is split
        split_tiles = split_tiles_of(T.ceildiv(M, block_M) * T.ceildiv(N, block_N) % programs, T.ceildiv(K, block_K))
        parts = T.alloc_global((T.if_then_else(split_tiles > 0, 2 * programs, 0), block_M, block_N), "float32")

        # multiply
        with T.Kernel(programs, threads=threads) as block:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared(B_tile, dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)  # the result where K is 0: otherwise a tile's first MMA overwrites it
            T.pdl_trigger()

            rows = T.ceildiv(M, block_M)
            columns = T.ceildiv(N, block_N)
            k_tiles = T.ceildiv(K, block_K)
            tail_tiles = rows * columns % programs  # tiles of the last wave
            split_tiles = split_tiles_of(tail_tiles, k_tiles)
            waves = T.ceildiv(rows * columns - split_tiles, programs)
            k_tiles_per_part = k_tiles_per_part_of(split_tiles, k_tiles)
            # Block b computes the whole tiles b, b + programs and so on. Then, if tiles are split, the blocks
            # p * split_tiles to (p + 1) * split_tiles - 1 compute part p of them, each of one tile, and the spare
            # blocks (the last ones, fewer than split_tiles) the last part of all. Blocks with the same part_index work
            # on the same part of K at the same time, as those of a whole wave do: they share operands in L2.
            part_index = T.if_then_else(split_tiles > 0, block // T.max(split_tiles, 1), 0)
            programs_from_part = programs - part_index * split_tiles  # blocks with this part_index or a later one
            split_waves = T.if_then_else(split_tiles > 0, T.ceildiv(split_tiles, programs_from_part), 0)

            for wave in T.serial(waves + split_waves):
                whole = wave < waves
                split_tile = block - part_index * split_tiles + (wave - waves) * programs_from_part
                tile = T.if_then_else(whole, wave * programs + block, rows * columns - split_tiles + split_tile)
                start = T.if_then_else(whole, 0, part_index * k_tiles_per_part)
                count = T.if_then_else(whole, k_tiles, T.min(k_tiles_per_part, k_tiles - start))
                if 0 <= tile and tile < rows * columns and (whole or count > 0):
                    by, bx = place_of(tile, rows, columns)
                    # Every other whole wave iterates over K backwards, from the K tiles that the previous one read last (L2).
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
                        T.copy(C_local, parts[part_index * split_tiles + split_tile, 0, 0])
                    # Fused ReLU of a whole tile. A part is stored already, and not used afterwards: a branch around
                    # the ReLU would make ptxas 12.4 serialise the wgmmas (C7515).
                    for i, j in T.Parallel(block_M, block_N):
                        C_local[i, j] = T.max(C_local[i, j], 0)
                    if whole:
                        T.copy(C_local, C[by * block_M, bx * block_N])

        # add
        strips = block_M // strip  # strips of a tile
        tail_tiles = T.ceildiv(M, block_M) * T.ceildiv(N, block_N) % programs
        with T.Kernel(split_tiles_of(tail_tiles, T.ceildiv(K, block_K)) * strips, threads=128) as index:
            total = T.alloc_fragment((strip, block_N), "float32")

            rows = T.ceildiv(M, block_M)
            columns = T.ceildiv(N, block_N)
            k_tiles = T.ceildiv(K, block_K)
            split_tiles = split_tiles_of(rows * columns % programs, k_tiles)
            split_tile = index // strips
            row = index % strips * strip
            by, bx = place_of(rows * columns - split_tiles + split_tile, rows, columns)
            k_tiles_per_part = k_tiles_per_part_of(split_tiles, k_tiles)

            T.clear(total)
            T.pdl_sync()
            for part_index in T.serial(T.ceildiv(k_tiles, k_tiles_per_part)):
                for i, j in T.Parallel(strip, block_N):
                    total[i, j] += parts[part_index * split_tiles + split_tile, row + i, j]
            for i, j in T.Parallel(strip, block_N):
                total[i, j] = T.max(total[i, j], 0)
            T.copy(total, C[by * block_M + row, bx * block_N])

    return gemm_hybrid_kernel
