"""Cross entropy of logits over a vocabulary of any size, with its gradient, in two passes over memory."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def cross_entropy(M, vocab, block_N=4096, threads=128, dtype="float16"):
    """Loss[i] = log(sum(exp(Logits[i]))) - Logits[i, Labels[i]], and Grad, the gradient of the sum of all Loss.

    A row whose label is negative is ignored: its loss and gradient are 0. Logits must be finite.
    """
    accum_dtype = "float32"
    log2e = 1.44269504

    @T.prim_func
    def cross_entropy_kernel(
        Logits: T.Tensor((M, vocab), dtype),
        Labels: T.Tensor((M,), "int32"),
        Loss: T.Tensor((M,), accum_dtype),
        Grad: T.Tensor((M, vocab), dtype),
    ):
        with T.Kernel(M, threads=threads) as row:
            x = T.alloc_fragment((block_N,), accum_dtype)
            largest = T.alloc_fragment((1,), accum_dtype)
            previous = T.alloc_fragment((1,), accum_dtype)
            part = T.alloc_fragment((1,), accum_dtype)
            total = T.alloc_fragment((1,), accum_dtype)

            # The sum of exponentials, rescaled when the largest logit grows.
            T.clear(total)
            T.fill(largest, -T.infinity(accum_dtype))
            for k in T.serial(T.ceildiv(vocab, block_N)):
                for j in T.Parallel(block_N):
                    inside = k * block_N + j < vocab
                    logit = T.cast(Logits[row, k * block_N + j], accum_dtype)
                    x[j] = T.if_then_else(inside, logit, -T.infinity(accum_dtype))
                T.copy(largest, previous)
                T.reduce_max(x, largest, dim=0, clear=False)
                for j in T.Parallel(block_N):
                    x[j] = T.exp2((x[j] - largest[0]) * log2e)
                T.reduce_sum(x, part, dim=0)
                total[0] = total[0] * T.exp2((previous[0] - largest[0]) * log2e) + part[0]

            label = Labels[row]
            for i in T.Parallel(1):
                logit = T.cast(Logits[row, T.max(label, 0)], accum_dtype)
                Loss[row + i] = T.if_then_else(label >= 0, T.log(total[0]) + largest[0] - logit, 0)
            for k in T.serial(T.ceildiv(vocab, block_N)):
                for j in T.Parallel(block_N):
                    column = k * block_N + j
                    if column < vocab:
                        p = T.exp2((T.cast(Logits[row, column], accum_dtype) - largest[0]) * log2e) / total[0]
                        Grad[row, column] = T.if_then_else(label >= 0, p - T.if_then_else(column == label, 1.0, 0.0), 0)

    return cross_entropy_kernel
