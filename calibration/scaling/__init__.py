"""Steps of one model on several numbers of hosts: computing, links and what they share, learned from a table of step seconds."""
