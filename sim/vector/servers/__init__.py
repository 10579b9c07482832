"""Rounds of parameter servers, ranks as arrays: gradients come to ports in an order, servers sum and answer."""
