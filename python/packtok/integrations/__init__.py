"""Sources of other trainers over packed files; each module needs the trainer whose name it has."""
