"""Adds what a model lacks, and relearns its policy only."""

from hycop.enrichment.choice import Closure
from hycop.enrichment.enrich import Enriched, enrich
from hycop.enrichment.learning import NETWORKS, NetworkPlan

__all__ = ["NETWORKS", "Closure", "Enriched", "NetworkPlan", "enrich"]
