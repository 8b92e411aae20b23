"""The option that rewrites the expected diagnostics."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-errors", action="store_true", help="write the diagnostics of today into tests/errors")
# ---- expected ----
# error[T2C-F003]: the file has no kernel
#  --> conftest.py:1:1
#   |
# 1 | """The option that rewrites the expected diagnostics."""
#   | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: a kernel is a @tilelang.jit function with `with T.Kernel(...)`, or one that returns a @T.prim_func
