"""Pack configs: their options, how they are read and checked, and what stays secret.

Covers everything from a YAML file, a mapping or keyword arguments to one validated `PackConfig`. The names
below are imported on first use, because importing pydantic, OmegaConf and YAML takes longer than most
commands run.
"""

from packtok.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
