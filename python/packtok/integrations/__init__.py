"""Public names of `packtok.compat` for other trainers; each module needs the trainer whose name it has."""
