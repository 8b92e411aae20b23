"""What TileLang's interface has and tile2cu has no use for: accepted, and said once."""

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


class Note(UserWarning):
    """An argument or a call that has no effect here."""


_PACKAGE = Path(__file__).parent
_said: set[str] = set()

# Arguments of jit, compile and the like that have no effect, and why.
WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        "target_host": "the launcher is C++ for the host",
        "execution_backend": "kernels are called through the C interface of the emitted source",
        "verbose": "`tile2cu explain FILE` reports the decisions",
        "debug_root_path": "the emitted files are in `kernel.folder`",
        "compile_flags": "nvcc's options are fixed, so that the emitted source alone decides the code",
    }
)


def once(message: str) -> None:
    """Warns of something that has no effect, the first time, at the program's line."""
    if message not in _said:
        _said.add(message)
        frame = sys._getframe(1)
        while frame.f_back is not None and Path(frame.f_code.co_filename).is_relative_to(_PACKAGE):
            frame = frame.f_back
        warnings.warn_explicit(message, Note, frame.f_code.co_filename, frame.f_lineno)


def ignored(**arguments: object) -> None:
    """Warns of each argument that was given and has no effect."""
    for name, value in arguments.items():
        if value not in (None, False, "auto"):
            once(f"`{name}` has no effect: {WITHOUT_EFFECT[name]}")
