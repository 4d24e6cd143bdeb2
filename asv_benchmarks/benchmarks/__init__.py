"""Speed, memory and quality of rankbench over commits, by airspeed velocity."""
