"""Reading the data set: folders, annotations, items, documents."""
