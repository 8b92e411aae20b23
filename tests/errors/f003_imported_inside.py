def make(N):
    import tilelang
    import tilelang.language as T

    @tilelang.jit
    def kernel(N):
        @T.prim_func
        def clear(X: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
                for i in T.Parallel(128):
                    X[bx * 128 + i] = 0.0

        return clear

    return kernel(N)

# ---- expected ----
# error[T2C-F003]: the file has no kernel
#  --> f003_imported_inside.py:1:1
#   |
# 1 | def make(N):
#   | ^^^^^^^^^^^^
#   = help: functions that import tilelang themselves are named: --kernel make
