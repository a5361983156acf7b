"""Adds what a model lacks, and relearns its policy only."""

from hycop.enrichment.enrich import Enriched, enrich

__all__ = ["Enriched", "enrich"]
