"""Questions that take several simulations."""
