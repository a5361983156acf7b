"""One self-contained HTML page for a run: what was learned, how well, and where not to trust it."""
