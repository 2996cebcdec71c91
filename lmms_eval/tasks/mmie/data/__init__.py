"""The data of MMIE: finds and unpacks it, and makes documents of records."""
