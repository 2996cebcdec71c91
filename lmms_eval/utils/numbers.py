"""Numbers as people read them."""


def two_decimals(value: float) -> str:
    """Two decimals, or one figure where these would show a value above 0 as 0."""
    return f"{value:.1g}" if 0 < value < 0.005 else f"{value:.2f}"
