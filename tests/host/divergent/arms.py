"""Arms of branches that threads of a block take differently: the second arm finds what the first one left.

Each is the body of a kernel of 128 threads with X and Y of (4, 256) int32.
"""

_S = """
S = T.alloc_shared((128,), "int32")
tx = T.get_thread_binding()
"""

KERNELS = {
    "read_of_the_other_arm": f"""
{_S}
S[tx] = 0
if X[0, tx] > 0:
    S[tx] = X[1, tx]
else:
    Y[0, tx] = S[127 - tx]
""",
    "overwritten_by_the_other_arm": f"""
{_S}
S[tx] = X[1, tx]
if tx % 2 == 0:
    Y[0, tx] = S[tx + 1]
else:
    S[tx] = X[2, tx]
Y[1, tx] = S[tx]
""",
    "both_arms_write": f"""
{_S}
S[tx] = 0
if X[0, tx] > 0:
    S[tx // 2] = 5
else:
    S[127 - tx] = 7
Y[0, tx] = S[tx]
""",
    "warps_of_either_arm": f"""
{_S}
if tx < 64:
    S[tx] = X[0, tx]
else:
    Y[0, tx] = S[tx - 64]
""",
    "warps_with_barriers_of_their_own": f"""
{_S}
S[tx] = 0
if tx < 64:
    S[tx] = X[0, tx]
    Y[0, tx] = S[63 - tx]
    S[tx] = X[1, tx]
else:
    S[tx] = X[0, tx]
    Y[0, tx] = S[191 - tx]
    Y[1, tx] = S[tx - 64]
""",
    "lanes_with_barriers_of_their_own": f"""
{_S}
S[tx] = X[2, tx]
if tx < 16:
    S[tx] = X[0, tx]
    Y[0, tx] = S[15 - tx]
else:
    Y[0, tx] = S[tx - 16] + S[tx - 1]
""",
    "one_element_per_thread_in_both": f"""
{_S}
if X[0, tx] > 0:
    S[tx] = X[1, tx]
else:
    S[tx] = X[2, tx]
Y[0, tx] = S[127 - tx]
""",
    "chain_of_three": f"""
{_S}
S[tx] = X[3, tx]
if tx % 3 == 0:
    S[tx] = X[0, tx]
elif tx % 3 == 1:
    S[tx] = S[tx - 1] + X[1, tx]
else:
    Y[0, tx] = S[tx - 1]
Y[1, tx] = S[127 - tx]
""",
    "branch_in_the_first_arm": f"""
{_S}
S[tx] = 0
if X[0, tx] > 0:
    if X[1, tx] > 0:
        S[tx] = 1
    else:
        Y[1, tx] = S[127 - tx]
    Y[2, tx] = S[tx ^ 1]
else:
    S[tx ^ 1] = 4
    Y[0, tx] = S[tx ^ 3]
""",
    "uniform_branch_within": f"""
{_S}
S[tx] = 0
for k in T.serial(2):
    if X[0, tx] > 0:
        if X[1, k] > 0:
            S[tx] = k + 1
        else:
            S[tx] = k + 3
    else:
        Y[k, tx] = S[127 - tx]
""",
    "in_a_loop": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(3):
    if tx % 2 == k % 2:
        S[tx] = S[tx] + X[k, tx]
    else:
        Y[k, tx] = S[tx ^ 1]
""",
    "loops_in_both_arms": f"""
{_S}
S[tx] = 0
if tx < 40:
    for k in T.serial(3):
        S[tx] = S[tx] + X[k, tx]
else:
    for k in T.serial(2):
        Y[k, tx] = S[(tx + k) % 40]
""",
    "condition_on_the_tile": f"""
{_S}
S[tx] = X[0, tx]
if S[tx ^ 1] > 0:
    S[tx] = -S[tx]
else:
    Y[0, tx] = S[tx ^ 2]
""",
    "condition_changed_in_the_arm": f"""
{_S}
x = T.alloc_var("int32")
x = X[0, tx]
S[tx] = 0
if x > 0:
    x = -x
    S[tx] = x
else:
    Y[0, tx] = S[127 - tx] + x
Y[1, tx] = x
""",
    "values_of_the_arms": f"""
{_S}
S[tx] = X[0, tx]
if X[1, tx] > 0:
    left = S[tx] * 3
    S[tx] = left + X[2, tx]
else:
    right = S[tx ^ 1] + 2
    S[tx] = right
Y[0, tx] = S[127 - tx]
""",
    "two_tiles": f"""
{_S}
R = T.alloc_shared((128,), "int32")
S[tx] = X[0, tx]
R[tx] = X[1, tx]
if X[2, tx] > 0:
    S[tx] = R[127 - tx]
else:
    R[tx] = S[127 - tx]
Y[0, tx] = S[tx]
Y[1, tx] = R[tx]
""",
    "view_of_the_tile": f"""
{_S}
V = T.view(S, (2, 64))
S[tx] = 0
if tx % 2 == 1:
    V[tx // 64, tx % 64] = X[0, tx]
else:
    Y[0, tx] = S[tx + 1]
""",
    "atomics_in_both": f"""
{_S}
S[tx] = 0
if X[0, tx] > 0:
    T.atomic_add(S[X[0, tx]], 1)
else:
    T.atomic_add(S[-X[0, tx]], 2)
Y[0, tx] = S[tx]
""",
    "atomic_and_read": f"""
{_S}
S[tx] = 0
if X[0, tx] > 0:
    T.atomic_add(S[X[0, tx]], 1)
else:
    Y[0, tx] = S[-X[0, tx]]
Y[1, tx] = S[tx]
""",
    "sum_and_maximum": f"""
{_S}
S[tx] = 0
if X[0, tx] > 0:
    T.atomic_add(S[X[0, tx]], 3)
else:
    T.atomic_max(S[-X[0, tx]], 7)
Y[0, tx] = S[tx]
""",
    "tile_work_after_the_arms": f"""
{_S}
T.clear(S)
if X[0, tx] > 0:
    S[tx] = X[1, tx]
else:
    Y[1, tx] = S[127 - tx]
for i in T.Parallel(128):
    Y[0, i] = S[127 - i]
""",
    "tile_copied_between": f"""
{_S}
T.copy(X[0, 0:128], S)
if X[1, tx] > 0:
    S[tx] = S[tx] + 1
else:
    S[tx ^ 1] = S[tx] * 2
T.copy(S, Y[0, 0:128])
""",
    "return_of_some": f"""
{_S}
S[tx] = X[0, tx]
if X[1, tx] > 0:
    S[tx] = 9
    T.thread_return()
Y[0, tx] = S[127 - tx]
""",
    "return_of_the_others": f"""
{_S}
S[tx] = X[0, tx]
if X[1, tx] > 0:
    S[tx] = 9
    Y[1, tx] = S[127 - tx]
else:
    S[tx ^ 1] = 4
    T.thread_return()
Y[0, tx] = S[tx ^ 2]
""",
}
