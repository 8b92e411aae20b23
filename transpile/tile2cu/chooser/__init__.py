"""Which values of its tile parameters make a kernel fast: a space of configurations, and a model of their time."""
