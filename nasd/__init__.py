"""The composition: the only package that knows the others."""
