"""How loops run: pipelines, and the order of their iterations."""
