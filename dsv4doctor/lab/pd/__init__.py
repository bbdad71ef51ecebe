"""Prefill and decode apart: two engines with pools of their own, and what goes between them."""
