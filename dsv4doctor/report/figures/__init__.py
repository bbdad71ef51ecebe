"""Plots as SVG, computed from rows: no script, no network; colours come from the page's classes."""
