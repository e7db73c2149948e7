"""From a checked config to a pbin, on this machine or in an object store, and the report of it."""
