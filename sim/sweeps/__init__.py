"""The parts of sim.sweep: the scenarios of a grid, the processes that simulate them, the rows that they give, and their file."""
