"""Who asks many times: the search for the constants of a policy."""
