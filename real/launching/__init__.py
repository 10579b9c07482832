"""Start and join ranks: mpirun, hosts, a cluster in a box."""
