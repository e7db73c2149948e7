"""Outputs and inputs in object stores."""
