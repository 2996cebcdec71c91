"""Settings of the whole test suite. Plugins are named here so that xdist's controller loads them too."""

from hypothesis import settings

pytest_plugins = ("tests.parity.plugin",)

settings.register_profile("shared_machine", deadline=None)  # a busy machine must not fail a property
settings.load_profile("shared_machine")
