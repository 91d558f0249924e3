"""Measure a machine: what a model's forwards cost, as a profile with its raw samples."""
