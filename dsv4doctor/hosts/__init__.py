"""Machines over SSH, and this one, behind one small protocol: run a script, get its answer."""
