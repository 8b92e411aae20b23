"""Changes to a launch that make it possible to decide: the same computation, said in other statements."""
