"""Reading of the data set: folders, annotations, items, documents."""
