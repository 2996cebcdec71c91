"""The data of MMIE: finding and unpacking it, and making documents of records."""
