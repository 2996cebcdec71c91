"""The data of MMIE: finding and unpacking them, records as documents."""
