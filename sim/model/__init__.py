"""Models and the costs of computing them: variables, sparse rows, where variables go."""
