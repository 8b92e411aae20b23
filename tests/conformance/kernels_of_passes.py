"""Small kernels, by the pass that each makes do something."""

PARAMS = """X: T.Tensor((256, 64), "float32"), H: T.Tensor((256, 64), "float16"), rows: T.Tensor((256,), "int32"),
    Y: T.Tensor((256, 64), "float32")"""

# By pass: the target, the threads per block, and the pass's effect.
KERNELS: dict[str, tuple[str, int, str]] = {
    "clear-in-gemm": (
        "cuda:sm_90a",
        128,
        """
        A_shared = T.alloc_shared((64, 64), "float16")
        S = T.alloc_fragment((64, 64), "float32")
        sums = T.alloc_fragment((64, 64), "float32")
        T.clear(sums)
        T.clear(S)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(H[k * 64, 0], A_shared)
            T.gemm(A_shared, A_shared, S, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                sums[i, j] += S[i, j]
            T.clear(S)
        T.copy(sums, Y[0, 0])
        """,
    ),
    "collapse-loops": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((8, 64), "float32")
        T.copy(X[0, 0], F)
        for i in T.serial(8):
            for j in T.Parallel(64):
                F[i, j] = F[i, j] * 2.0 + X[i + 8, j]
        T.copy(F, Y[0, 0])
        """,
    ),
    "dead-code": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((8, 64), "float32")
        unused = T.alloc_fragment((8, 64), "float32")
        T.copy(X[0, 0], F)
        T.copy(F, Y[0, 0])
        """,
    ),
    "drop-dependent-launch": (
        "cuda:sm_80",
        128,
        """
        T.pdl_sync()
        F = T.alloc_fragment((8, 64), "float32")
        T.copy(X[0, 0], F)
        T.copy(F, Y[0, 0])
        """,
    ),
    "drop-idle-waits": (
        "cuda:sm_90a",
        128,
        """
        A = T.alloc_shared((64, 64), "float16")
        B = T.alloc_shared((64, 64), "float16")
        C = T.alloc_fragment((64, 64), "float32")
        T.clear(C)
        T.copy(H[0, 0], A)
        T.copy(H[64, 0], B)
        T.gemm(A, B, C, transpose_B=True)
        T.wait_wgmma(0)
        T.copy(C, Y[0, 0])
        """,
    ),
    "drop-wgmma-waits": (
        "cuda:sm_80",
        128,
        """
        A = T.alloc_shared((64, 64), "float16")
        B = T.alloc_shared((64, 64), "float16")
        C = T.alloc_fragment((64, 64), "float32")
        T.clear(C)
        T.copy(H[0, 0], A)
        T.copy(H[64, 0], B)
        T.gemm(A, B, C, transpose_B=True, wg_wait=-1)
        T.wait_wgmma(0)
        T.copy(C, Y[0, 0])
        """,
    ),
    "forward-copies": (
        "cuda:sm_80",
        128,
        """
        S = T.alloc_shared((4, 64), "float32")
        F = T.alloc_fragment((4, 64), "float32")
        T.copy(X[0, 0], S)
        T.copy(S, F)
        for i, j in T.Parallel(4, 64):
            F[i, j] = F[i, j] * 2.0
        T.copy(F, S)
        T.copy(S, Y[0, 0])
        """,
    ),
    "gather-rows": (
        "cuda:sm_80",
        128,
        """
        own = T.alloc_shared((64,), "int32")
        T.copy(rows[0:64], own)
        A = T.alloc_shared((64, 64), "float16")
        B = T.alloc_shared((64, 64), "float16")
        C = T.alloc_fragment((64, 64), "float32")
        T.clear(C)
        for k in T.Pipelined(4, num_stages=3):
            for i, j in T.Parallel(64, 64):
                A[i, j] = H[own[i], j]
            T.copy(H[k * 64, 0], B)
            T.gemm(A, B, C, transpose_B=True)
        T.copy(C, Y[0, 0])
        """,
    ),
    "group-fragments": (
        "cuda:sm_90a",
        384,
        """
        F = T.alloc_fragment((64, 64), "float32")
        with T.ws(0):
            T.copy(X[0, 0], F)
            T.copy(F, Y[0, 0])
        with T.ws(1, 2):
            T.copy(X[64, 0], F)
            T.copy(F, Y[64, 0])
        """,
    ),
    "if-conversion": (
        "cuda:sm_90a",
        128,
        """
        A = T.alloc_shared((64, 64), "float16")
        B = T.alloc_shared((64, 64), "float16")
        C = T.alloc_fragment((64, 64), "float32")
        T.clear(C)
        for k in T.Pipelined(4, num_stages=2):
            if k == 3:
                T.copy(H[0, 0], A)
            else:
                T.copy(H[k * 64, 0], A)
            T.copy(H[k * 64, 0], B)
            T.gemm(A, B, C, transpose_B=True)
        T.copy(C, Y[0, 0])
        """,
    ),
    "in-place-updates": (
        "cuda:sm_80",
        128,
        """
        now = T.alloc_fragment((64,), "float32")
        step = T.alloc_fragment((64,), "float32")
        wide = T.alloc_fragment((64, 64), "float32")
        before = T.alloc_shared((64,), "float32")
        T.copy(X[0, 0], wide)
        T.reduce_max(wide, now, dim=1)
        T.clear(before)
        T.clear(step)
        for i in T.Parallel(64):
            step[i] = step[i] + now[i] - before[i]
            before[i] = now[i]
        T.copy(step, Y[0, 0:64])
        """,
    ),
    "linear-index": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((512,), "float32")
        for i, j in T.Parallel(64, 8):
            F[i * 8 + j] = X[i, j] * 2.0
        for i, j in T.Parallel(64, 8):
            Y[i, j] = F[i * 8 + j]
        """,
    ),
    "loop-to-copy": (
        "cuda:sm_80",
        128,
        """
        A = T.alloc_shared((64, 64), "float16")
        B = T.alloc_shared((64, 64), "float16")
        C = T.alloc_fragment((64, 64), "float32")
        T.clear(C)
        for k in T.Pipelined(4, num_stages=3):
            for i, j in T.Parallel(64, 64):
                A[i, j] = T.if_then_else(i < 250 - k * 64, H[k * 64 + i, j], 0)
            T.copy(H[k * 64, 0], B)
            T.gemm(A, B, C, transpose_B=True)
        T.copy(C, Y[0, 0])
        """,
    ),
    "lower-tile-ops": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((8, 64), "float32")
        T.copy(X[0, 0], F)
        T.fill(F[2:6, 0:64], 3.0)
        T.copy(F, Y[0, 0])
        """,
    ),
    "reshape-fragments": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((8, 64), "float32")
        V = T.view(F, (8, 16, 4))
        T.copy(X[0, 0], F)
        for i, g, j in T.Parallel(8, 16, 4):
            V[i, g, j] = V[i, g, j] * 2.0 + g
        T.copy(F, Y[0, 0])
        """,
    ),
    "shared-divisors": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((8, 64), "float32")
        total = T.alloc_fragment((8,), "float32")
        T.copy(X[0, 0], F)
        for i, j in T.Parallel(8, 64):
            F[i, j] = F[i, j] * F[i, j] + 1.0
        T.reduce_sum(F, total, dim=1)
        for i, j in T.Parallel(8, 64):
            F[i, j] = F[i, j] / total[i]
        T.copy(F, Y[0, 0])
        """,
    ),
    "shared-operands": (
        "cuda:sm_90a",
        256,
        """
        A_shared = T.alloc_shared((64, 64), "float16")
        S_shared = T.alloc_shared((64, 64), "float16")
        S_local = T.alloc_fragment((64, 64), "float16")
        S = T.alloc_fragment((64, 64), "float32")
        O = T.alloc_fragment((64, 64), "float32")
        T.clear(O)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(H[k * 64, 0], A_shared)
            T.clear(S)
            T.gemm(A_shared, A_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
            T.copy(S, S_shared)
            T.copy(S_shared, S_local)
            for i, j in T.Parallel(64, 64):
                O[i, j] *= 0.5
            T.gemm(S_local, A_shared, O, policy=T.GemmWarpPolicy.FullCol)
        T.copy(O, Y[0, 0])
        """,
    ),
    "sum-after-loop": (
        "cuda:sm_80",
        128,
        """
        x = T.alloc_fragment((8, 64), "float32")
        total = T.alloc_fragment((64,), "float32")
        T.clear(total)
        for t in T.serial(4):
            T.copy(X[t * 8, 0], x)
            T.reduce_sum(x, total, dim=0, clear=False)
        T.copy(total, Y[0, 0:64])
        """,
    ),
    "thread-local-rows": (
        "cuda:sm_90a",
        128,
        """
        A_shared = T.alloc_shared((64, 64), "float16")
        line_shared = T.alloc_shared((64,), "float32")
        S = T.alloc_fragment((64, 64), "float32")
        sums = T.alloc_fragment((64, 64), "float32")
        T.clear(sums)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(H[k * 64, 0], A_shared)
            for i in T.Parallel(64):
                line_shared[i] = X[i, k] * 2.0
            T.gemm(A_shared, A_shared, S, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                sums[i, j] += S[i, j] * line_shared[i]
        T.copy(sums, Y[0, 0])
        """,
    ),
    "total-of-partials": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((64, 64), "float32")
        partials = T.alloc_fragment((128, 2), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(X[64, 0], F)
        T.clear(partials)
        for i, j in T.Parallel(64, 64):
            partials[i // 16 * 32 + i % 8 * 4 + j % 8 // 2, j % 2] += F[i, j]
        T.reduce_sum(T.reshape(partials, (256,)), total, dim=0)
        for i, j in T.Parallel(256, 64):
            Y[i, j] = total[0]
        """,
    ),
    "uniform-updates": (
        "cuda:sm_80",
        128,
        """
        S = T.alloc_shared((4,), "float32")
        S[0] = 1.0
        for k in T.serial(3):
            S[0] = S[0] + X[k, 0]
        T.copy(S, Y[0, 0:4])
        """,
    ),
    "unit-dimensions": (
        "cuda:sm_80",
        128,
        """
        F = T.alloc_fragment((1, 8, 1, 64), "float32")
        for a, i, b, j in T.Parallel(1, 8, 1, 64):
            F[a, i, b, j] = X[i + a, j + b] * 2.0
        for a, i, b, j in T.Parallel(1, 8, 1, 64):
            Y[i, j] = F[a, i, b, j] + 1.0
        """,
    ),
    "whole-warps": (
        "hip:gfx942",
        32,
        """
        A_shared = T.alloc_shared((32, 64), "float16")
        S = T.alloc_fragment((32, 32), "float32")
        total = T.alloc_fragment((32,), "float32")
        T.copy(H[0, 0], A_shared)
        T.gemm(A_shared, A_shared, S, transpose_B=True, clear_accum=True)
        T.reduce_sum(S, total, dim=1)
        T.copy(total, Y[0, 0:32])
        """,
    ),
    "predicate-exits": (
        "cuda:sm_80",
        128,
        """
        S = T.alloc_shared((64,), "float32")
        t = T.get_thread_binding() % 64
        S[t] = 0
        for k in T.serial(6):
            if X[k, t] > 1:
                continue
            S[t] = X[k, t]
            Y[k, t] = S[63 - t]
            if X[k + 8, t] > 1:
                break
        """,
    ),
    "read-first": (
        "cuda:sm_80",
        64,
        """
        S = T.alloc_shared((64,), "float32")
        t = T.get_thread_binding()
        S[t] = X[0, t]
        S[t] = S[63 - t] + X[1, t]
        Y[0, t] = S[t]
        """,
    ),
    "agree-on-branches": (
        "cuda:sm_80",
        128,
        """
        for i, j in T.Parallel(2, 64):
            Y[i, j] = i + j
        if Y[0, 5] > 4:
            for i, j in T.Parallel(2, 64):
                Y[i, j] = X[i, j]
            for i, j in T.Parallel(2, 64):
                Y[i + 2, j] = Y[1 - i, 63 - j] * 2
        """,
    ),
    "sync-iterations": (
        "cuda:sm_80",
        128,
        """
        S = T.alloc_shared((2,), "int32")
        t = T.get_thread_binding()
        if t == 0:
            S[0] = 5
            S[1] = 0
        while S[0] > 0 and S[1] < 20:
            if t == 5:
                S[0] = S[0] - 1
            if t == 77:
                S[1] = S[1] + 2
        Y[t % 2, t % 64] = S[1]
        """,
    ),
    "split-branches": (
        "cuda:sm_80",
        128,
        """
        S = T.alloc_shared((64,), "float32")
        t = T.get_thread_binding()
        Y[0, t % 64] = 0
        if t < 40:
            S[t] = X[0, t]
            for i in T.serial(5):
                row = rows[i]
                if row > 40:
                    neighbour = S[(t + 1) % 40]
                    S[t] = neighbour + X[row, t]
            Y[1, t] = S[t]
        """,
    ),
}
