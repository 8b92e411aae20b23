"""The runtime's public names, where checkers and readers of tile2cu find them."""

from tile2cu_runtime import *  # noqa: F403
