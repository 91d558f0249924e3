"""Read what other programs measured, and printed, as profiles."""
