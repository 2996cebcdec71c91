"""Classes that outside model plugins of the family subclass; each hands its requests to a back end of this project."""
