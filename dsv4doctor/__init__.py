"""Find out why a DeepSeek-V4 deployment corrupts its output, prove it, fix what can be fixed."""

__version__ = "0.1.0"
SCHEMA_VERSION = 1
