"""How ranks are started and joined: mpirun, hosts, a cluster in a box."""
