"""The pages, one module for each, and the modules that only they use."""
