"""Import path of the family."""
