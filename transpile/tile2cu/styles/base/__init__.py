"""What every style shares: names, comments, and the views that templates print."""
