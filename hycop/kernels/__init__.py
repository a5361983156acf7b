"""Loops over cells: arrays in, arrays out, no words of the domain. Parallel over samples, or rows if those are few."""
