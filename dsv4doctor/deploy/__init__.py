"""Deployments that are relaunched for an experiment, and surely put back afterwards."""
