"""The server: many requests decoded side by side, one tick at a time."""
