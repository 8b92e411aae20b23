"""Results that iterations, or a macro's calls, store to the same rows, or that a macro reads: in the user's order."""

import tilelang.language as T


@T.macro
def get(Y, R):
    T.copy(Y[0, 0], R)


@T.macro
def put(C, Y):
    T.copy(C, Y[0, 0])


@T.macro
def multiply(A_shared, B_shared, C, X, W, row):
    T.clear(C)
    for k in T.Pipelined(2, num_stages=2):
        T.copy(X[row, k * 32], A_shared)
        T.copy(W[k * 32, 0], B_shared)
        T.gemm(A_shared, B_shared, C)


def results_stored_over_one_another(N):
    @T.prim_func
    def kernel(
        X: T.Tensor((512, 64), "float16"),
        W: T.Tensor((64, 128), "float16"),
        Half: T.Tensor((256, 128), "float16"),
        Twice: T.Tensor((128, 128), "float16"),
        Read: T.Tensor((128, 128), "float16"),
        Again: T.Tensor((128, 128), "float16"),
        Rows: T.Tensor((4,), "int32"),
        Shifted: T.Tensor((256, 128), "float16"),
        Given: T.Tensor((256, 128), "float16"),
        Looped: T.Tensor((256, 128), "float16"),
        Halves: T.Tensor((384, 128), "float16"),
        Copied: T.Tensor((128, 64), "float16"),
        Turns: T.Tensor((512, 128), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            for tile in T.serial(4):
                multiply(A_shared, B_shared, C, X, W, tile * 128)
                T.copy(C, Half[(tile // 2) * 128, 0])
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            multiply(A_shared, B_shared, C, X, W, 0)
            put(C, Twice)
            for i, j in T.Parallel(128, 128):
                C[i, j] = C[i, j] * 2.0
            put(C, Twice)
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            R = T.alloc_fragment((128, 128), "float16")
            multiply(A_shared, B_shared, C, X, W, 0)
            T.copy(C, Read[0, 0])
            get(Read, R)
            T.copy(R, Again)
        with T.Kernel(1, threads=256) as bx:
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            for tile in T.serial(4):
                multiply(A_shared, B_shared, C, X, W, tile * 128)
                T.copy(C, Shifted[tile * 8, 0])
        with T.Kernel(1, threads=256) as bx:
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            for tile in T.serial(4):
                multiply(A_shared, B_shared, C, X, W, tile * 128)
                T.copy(C, Given[Rows[tile] * 8 + 16, 0])
        with T.Kernel(1, threads=256) as bx:
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            for tile in T.serial(4):
                multiply(A_shared, B_shared, C, X, W, tile * 128)
                for i, j in T.Parallel(128, 128):
                    Looped[tile * 24 + i, j] = C[i, j]
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((192, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((192, 128), "float32")
            for tile in T.serial(4):
                multiply(A_shared, B_shared, C, X, W, tile * 96)
                T.copy(C, Halves[(tile // 2) * 192, 0])
        with T.Kernel(1, threads=128) as bx:
            R = T.alloc_fragment((64, 64), "float16")
            for tile in T.serial(4):
                T.copy(X[tile * 64, 0], R)
                T.copy(R, Copied[tile * 12, 0])
        with T.Kernel(1, threads=256) as bx:
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            for tile in T.serial(4):
                multiply(A_shared, B_shared, C, X, W, tile * 128)
                if tile % 2 == 0:
                    T.copy(C, Turns[tile * 128, 0])
                else:
                    T.copy(C, Turns[tile * 128 - 120, 0])

    return kernel
