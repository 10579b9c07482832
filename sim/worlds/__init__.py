"""Code that both simulated worlds share: a protocol's text at work, and the time that a run may take."""

WORLDS = ("auto", "event", "engine")  # that may be asked for
