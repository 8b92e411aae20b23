"""What each name of the tile language does when it is called: one file per family, each with its table FUNCTIONS."""
