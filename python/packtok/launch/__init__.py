"""Packing by many tasks of a cluster: settings, submission scripts, Slurm's programs, where things stand."""
