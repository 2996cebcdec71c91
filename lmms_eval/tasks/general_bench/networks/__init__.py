"""Networks that metrics of pictures, videos and sounds need: each from weights in a local folder, loaded once a run."""
