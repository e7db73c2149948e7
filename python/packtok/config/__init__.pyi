# The names of this package, imported on first use: see packtok/lazy.py.

from packtok.config.load import ConfigSource as ConfigSource
from packtok.config.load import PackConfig as PackConfig
from packtok.config.load import load_config as load_config
