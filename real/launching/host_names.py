"""Names of hosts, before mpirun, ssh or a resolver see them."""

from __future__ import annotations

import re

from sim.base.errors import WrongSetting

PART = r"[A-Za-z0-9_:-]{1,63}"  # between dots (RFC 1035), or all of an IPv6 address
NAME = re.compile(rf"(?!-){PART}(\.{PART}){{0,126}}")  # what begins with a dash would be read as an option
ALLOWED = "names of hosts: letters, digits, and . _ : - but no - at the beginning; at most 63 of them between two dots"


def check(setting: str, name: str) -> None:
    """Refuse what is no name or address of a host.

    Raises:
        WrongSetting: it is none.
    """
    if not NAME.fullmatch(name):
        raise WrongSetting(setting, name, ALLOWED)
