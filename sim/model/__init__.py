"""What is trained and what computing it costs: variables, sparse rows, where variables go."""
