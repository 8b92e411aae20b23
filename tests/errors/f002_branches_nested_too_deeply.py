import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        if A[0] > 0:
         if A[1] > 0:
          if A[2] > 0:
           if A[3] > 0:
            if A[4] > 0:
             if A[5] > 0:
              if A[6] > 0:
               if A[7] > 0:
                if A[8] > 0:
                 if A[9] > 0:
                  if A[10] > 0:
                   if A[11] > 0:
                    if A[12] > 0:
                     if A[13] > 0:
                      if A[14] > 0:
                       if A[15] > 0:
                        if A[16] > 0:
                         if A[17] > 0:
                          if A[18] > 0:
                           if A[19] > 0:
                            if A[20] > 0:
                             if A[21] > 0:
                              if A[22] > 0:
                               if A[23] > 0:
                                if A[24] > 0:
                                 if A[25] > 0:
                                  if A[26] > 0:
                                   if A[27] > 0:
                                    if A[28] > 0:
                                     if A[29] > 0:
                                      if A[30] > 0:
                                       if A[31] > 0:
                                        if A[32] > 0:
                                         if A[33] > 0:
                                          if A[34] > 0:
                                           if A[35] > 0:
                                            if A[36] > 0:
                                             if A[37] > 0:
                                              if A[38] > 0:
                                               if A[39] > 0:
                                                if A[40] > 0:
                                                 if A[41] > 0:
                                                  if A[42] > 0:
                                                   if A[43] > 0:
                                                    if A[44] > 0:
                                                     if A[45] > 0:
                                                      if A[46] > 0:
                                                       if A[47] > 0:
                                                        if A[48] > 0:
                                                         if A[49] > 0:
                                                          if A[50] > 0:
                                                           if A[51] > 0:
                                                            if A[52] > 0:
                                                             if A[53] > 0:
                                                              if A[54] > 0:
                                                               if A[55] > 0:
                                                                if A[56] > 0:
                                                                 if A[57] > 0:
                                                                  if A[58] > 0:
                                                                   if A[59] > 0:
                                                                    if A[60] > 0:
                                                                     if A[61] > 0:
                                                                      if A[62] > 0:
                                                                       if A[63] > 0:
                                                                        if A[64] > 0:
                                                                         if A[65] > 0:
                                                                          if A[66] > 0:
                                                                           if A[67] > 0:
                                                                            if A[68] > 0:
                                                                             if A[69] > 0:
                                                                              A[0] = 1

# ---- expected ----
# error[T2C-F002]: loops and branches are nested more than 64 deep
#   --> f002_branches_nested_too_deeply.py:71:73
#    |
# 71 |                                                                         if A[64] > 0:
#    |                                                                         ^^^^^^^^^^^^^
#   = help: join conditions with `and`, or loops in one T.Parallel
