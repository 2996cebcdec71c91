"""Parts that the back ends of remote models share: arguments, media, generation options, the run of a stream."""
