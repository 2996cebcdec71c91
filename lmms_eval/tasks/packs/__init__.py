"""Packs: the task folders of other packages, unpacked from their wheels and used as data (``docs/packs.md``)."""
