"""Plugins of the whole test suite; named here so that xdist's controller loads them too."""

pytest_plugins = ("tests.parity.plugin",)
