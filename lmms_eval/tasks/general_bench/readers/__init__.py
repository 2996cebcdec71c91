"""Readers of JSON values and files of items and predictions, as arrays: boxes, masks, frames, flows, depths, sounds,
points.
"""
