"""Loops that some threads leave, or whose iteration they leave, before others, which need a barrier or work on tiles.

Each is the body of a kernel of 128 threads with X and Y of (4, 256) int32.
"""

_S = """
S = T.alloc_shared((128,), "int32")
tx = T.get_thread_binding()
S[tx] = 0
"""

KERNELS = {
    "continue_before_a_read": f"""
{_S}
for k in T.serial(4):
    S[tx] = X[k, tx]
    if X[k, tx] > 2:
        continue
    Y[k, tx] = S[127 - tx]
""",
    "continue_after_a_read": f"""
{_S}
for k in T.serial(4):
    S[tx] = X[k, tx]
    Y[k, tx] = S[127 - tx]
    if X[k, tx] > 2:
        continue
    Y[k, tx + 128] = k
""",
    "break_before_a_write": f"""
{_S}
for k in T.serial(4):
    if X[k, tx] > 2:
        break
    S[tx] = X[k, tx]
    Y[k, tx] = S[127 - tx]
""",
    "break_at_the_end": f"""
{_S}
for k in T.serial(4):
    S[tx] = X[k, tx]
    Y[k, tx] = S[127 - tx]
    if X[k, tx] > 2:
        break
""",
    "both": f"""
{_S}
for k in T.serial(4):
    S[tx] += X[k, tx]
    if X[k, tx] > 3:
        break
    Y[k, tx] = S[tx ^ 1]
    if X[k, tx] < 0:
        continue
    S[tx] += S[127 - tx]
Y[0, tx + 128] = S[tx ^ 5]
""",
    "break_in_the_second_arm": f"""
{_S}
for k in T.serial(4):
    if X[k, tx] <= 2:
        S[tx] = X[k, tx]
        Y[k, tx] = S[tx ^ 1]
    else:
        S[tx] = 50
        break
    Y[k, tx + 128] = S[tx ^ 2]
""",
    "exit_of_a_branch_in_a_branch": f"""
{_S}
for k in T.serial(4):
    if X[k, tx] > 0:
        if X[k, tx] > 2:
            S[tx] = k
            break
        S[tx] = S[tx ^ 1]
    else:
        if X[k, tx] < -2:
            continue
    Y[k, tx] = S[127 - tx]
""",
    "uniform_exit_beside_one_of_some": f"""
{_S}
for k in T.serial(4):
    if X[0, 0] + k > 5:
        break
    S[tx] = X[k, tx]
    if X[k, tx] > 2:
        continue
    Y[k, tx] = S[127 - tx]
""",
    "uniform_exit": f"""
{_S}
for k in T.serial(4):
    S[tx] = X[k, tx]
    if X[0, k] > 2:
        break
    Y[k, tx] = S[127 - tx]
Y[0, tx + 128] = S[tx ^ 1]
""",
    "inner_loop_left": f"""
{_S}
for k in T.serial(2):
    for j in T.serial(3):
        if X[j, tx] > k:
            break
        S[tx] = X[j, tx] + k
        Y[k, tx] = S[tx ^ 1]
    Y[k, tx + 128] = S[127 - tx]
""",
    "outer_loop_left_after_an_inner_one": f"""
{_S}
for k in T.serial(3):
    for j in T.serial(3):
        if X[j, tx] == k:
            continue
        S[tx] += X[j, tx]
        Y[k, tx] = S[tx ^ 3]
    if S[tx ^ 1] > 6:
        break
    Y[k, tx + 128] = S[127 - tx]
""",
    "exits_on_both_levels": f"""
{_S}
for k in T.serial(3):
    if X[k, tx] < -2:
        continue
    for j in T.serial(2):
        S[tx] = S[tx ^ 1] + X[j, tx]
        if S[tx] > 4:
            break
    if X[k, tx] > 2:
        break
    Y[k, tx] = S[127 - tx]
""",
    "value_used_after_the_exit": f"""
{_S}
for k in T.serial(4):
    x = X[k, tx] * 2
    if x > 4:
        continue
    S[tx] = x
    y = S[tx ^ 1] + x
    Y[k, tx] = y
""",
    "variable_of_the_exits": f"""
{_S}
at = T.alloc_var("int32")
at = -1
for k in T.serial(4):
    S[tx] = X[k, tx]
    if S[tx ^ 1] > 2:
        at = k
        break
Y[0, tx] = at
""",
    "unrolled": f"""
{_S}
for k in T.unroll(3):
    S[tx] = X[k, tx] + k
    if X[k, tx] == 1:
        continue
    Y[k, tx] = S[127 - tx]
""",
    "backwards": f"""
{_S}
for k in T.serial(3, -1, -1):
    if X[k, tx] == 4:
        break
    S[tx] += X[k, tx]
    Y[k, tx] = S[tx ^ 1]
""",
    "while_with_continue": f"""
{_S}
k = T.alloc_var("int32")
k = 0
while k < 4:
    S[tx] = X[k, tx]
    k = k + 1
    if S[tx ^ 1] > 2:
        continue
    Y[k - 1, tx] = S[127 - tx]
""",
    "warps_that_leave": f"""
{_S}
for k in T.serial(4):
    if tx // 32 == k:
        S[tx] = 40 + k
        break
    S[tx] = X[k, tx]
    Y[k, tx] = S[tx ^ 33]
""",
    "exit_after_the_tile_work": f"""
{_S}
for k in T.serial(4):
    T.copy(X[k, 0:128], S)
    if S[tx] > 2:
        continue
    Y[k, tx] = S[127 - tx]
""",
    "atomics_before_the_exit": f"""
{_S}
for k in T.serial(4):
    if X[k, tx] > 0:
        T.atomic_add(S[X[k, tx]], 1)
        continue
    Y[k, tx] = S[tx % 5]
""",
    "return_in_front_of_a_loop": f"""
{_S}
if X[3, tx] > 3:
    T.thread_return()
for k in T.serial(3):
    S[tx] = X[k, tx]
    Y[k, tx] = S[tx ^ 1]
""",
    "read_of_one_that_left": f"""
{_S}
for k in T.serial(1):
    if X[0, tx] > 0:
        S[tx] = X[1, tx]
        break
    Y[0, tx] = S[127 - tx]
""",
}
