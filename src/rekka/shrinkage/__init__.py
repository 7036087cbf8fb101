"""Small samples: coefficients held back by a ridge, or towards those of other cases."""
