"""The common parts of back ends of remote models: arguments, media, generation options, and the run of a stream."""
