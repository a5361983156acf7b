"""Speed and memory as ratios that hold on any machine: ``python -m benchmarks``."""
