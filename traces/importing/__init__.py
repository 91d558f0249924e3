"""What other programs keep of prompts and replies, read as the requests of a trace: a file for each format."""
