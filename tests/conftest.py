"""Hypothesis draws as `profiles` says."""

from __future__ import annotations

from profiles import load_profile

load_profile()
