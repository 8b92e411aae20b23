"""The version, where nothing else is imported."""

VERSION = "0.1.0"
