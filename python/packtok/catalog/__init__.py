"""Descriptions of datasets: their metadata files, the questions that fill them in, and their names."""
