"""HTML of texts and tokens that may contain anything, and of templates."""
