"""The AMD targets for which the examples are compiled and simulated."""

from __future__ import annotations

import os

import pytest

# TILE2CU_AMD_CHIPS=gfx90a,gfx942,gfx950 selects all; one keeps CI short, and target-specific behaviour has its own
# tests.
CHIPS = tuple(os.environ.get("TILE2CU_AMD_CHIPS", "gfx942").split(","))
ALL_CHIPS = "TILE2CU_AMD_CHIPS" in os.environ


def require_compiler(chip: str, request: pytest.FixtureRequest) -> None:
    """Skips, or fails where needs may not be missing: gfx950 takes a newer clang than the others."""
    if chip == "gfx950":
        request.getfixturevalue("ziglang")
