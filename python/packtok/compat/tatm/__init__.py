"""tatm's datasets, metadata and functions by their names, which `packtok.data` exports."""
