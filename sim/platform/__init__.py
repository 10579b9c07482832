"""Platforms: hosts, links, and the behaviour of TCP and polling."""
