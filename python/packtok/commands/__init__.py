"""The function behind each command of `packtok`, complete without the command line."""
