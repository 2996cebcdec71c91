"""Picture encoding, by the names that model plugins of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.model_utils.media_encoder import encode_image_to_base64 as encode_image_to_base64
from lmms_eval.compat.model_utils.media_encoder import (
    encode_image_to_base64_with_size_limit as encode_image_to_base64_with_size_limit,
)
from lmms_eval.compat.model_utils.media_encoder import encode_image_to_bytes as encode_image_to_bytes
from lmms_eval.compat.model_utils.media_encoder import encode_image_to_data_url as encode_image_to_data_url
