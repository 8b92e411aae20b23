import tilelang
import tilelang.language as T


@tilelang.jit
def copy_of_reshaped_tensor(N, threads=128):
    @T.prim_func
    def main(X: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            flat = T.reshape(X, (4096,))
            X_shared = T.alloc_shared((64, 64), "float32")
            T.copy(X, X_shared)
            for i, j in T.Parallel(64, 64):
                flat[(63 - j) * 64 + i] = X_shared[i, j] + 1

    return main
