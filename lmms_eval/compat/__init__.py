"""Names that task folders and model plugins of the family import, built to give the same values.

``aliases.tsv`` lists the family's paths, and ``lmms_eval.aliases`` offers these names there.
"""
