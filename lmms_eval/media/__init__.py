"""Pictures, videos and sounds: the only package that finds, hashes, decodes, samples, resizes and encodes them.

Every function takes any form of media that a task may provide (path, URL, data URL, bytes, PIL image, hub feature,
sound mapping). Errors are :class:`lmms_eval.errors.MediaError` with the name of the source. Heavy libraries are
imported when they are first used.
"""

from lmms_eval.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
