"""One thread for each product of NumPy and torch, which read this when they are imported: the workers of a parallel run
take all cores, and the threads of a product, much smaller than a user's, would wait for one another.
"""

import os

for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
