"""Packing with many tasks on a cluster: settings, submission scripts, Slurm, Ray, and the status of a run."""
