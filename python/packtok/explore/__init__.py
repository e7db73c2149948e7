"""The page of `packtok explore`: datasets, their provenance, and documents down to the token."""
