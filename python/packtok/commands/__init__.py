"""The function of each command of `packtok`, complete without the command line."""
