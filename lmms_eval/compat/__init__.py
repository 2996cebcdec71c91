"""Names that task folders and model plugins of the family import, built to give the same values.

They are imported at the family's paths, where thin modules offer them again.
"""
