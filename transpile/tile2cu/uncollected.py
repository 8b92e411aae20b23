"""Work during which Python does not collect cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_FEW = 20_000  # objects that a collection visits in a few milliseconds, as Python takes to count what is frozen


@contextmanager
def uncollected() -> Iterator[None]:
    """Collections of cycles wait: each would visit all programs and their facts, which are kept, and free little."""
    enabled, before = gc.isenabled(), gc.get_count()[0]
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            made = gc.get_count()[0] - before
            if made > _FEW and not gc.get_freeze_count():  # else a server's frozen objects would be unfrozen
                gc.freeze()
                gc.unfreeze()  # all objects are old: else the next new one would begin a collection that visits them
            gc.enable()
