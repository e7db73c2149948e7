"""Functions under the names and signatures of other projects, one module for each project."""
