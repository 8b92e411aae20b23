"""What each name of the tile language does when it is called: one file a family, each with its table FUNCTIONS."""
