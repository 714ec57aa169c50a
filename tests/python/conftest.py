"""What all tests share."""

from hypothesis import settings

# A property holds or it doesn't; how long it takes depends on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
