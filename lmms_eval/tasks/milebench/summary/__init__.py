"""From the scores of samples to the numbers of data sets, groups and the whole benchmark."""
