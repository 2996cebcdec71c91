"""Networks that the metrics of pictures, videos and sounds need. Each is loaded once per run from weights in a local
folder.
"""
