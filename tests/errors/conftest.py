"""The option that rewrites the expected diagnostics."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-errors", action="store_true", help="write the diagnostics of today into tests/errors")
