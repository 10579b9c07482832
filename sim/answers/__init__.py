"""Answers: results of a simulation, intervals, causes, and their pages."""
