"""The names that task files of the family import from here."""

from __future__ import annotations

from lmms_eval.compat.azure_openai import build_client as build_client
from lmms_eval.compat.azure_openai import has_endpoint_support as has_endpoint_support
