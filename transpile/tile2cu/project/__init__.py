"""Projects: what is listed to be emitted, and what lies in the folders that it was emitted into."""
