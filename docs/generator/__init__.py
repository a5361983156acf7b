"""Pages whose numbers come from ``results/*.json``: ``python -m docs.generator`` writes them, ``--check`` refuses
old ones."""
