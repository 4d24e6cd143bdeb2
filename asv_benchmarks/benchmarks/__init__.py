"""Benchmarks of rankbench's speed, memory and quality over commits, for airspeed velocity."""
