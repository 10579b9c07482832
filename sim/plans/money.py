"""Money in a question: shares of a price, amounts in a currency with a rate, and hosts with an offer behind their name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sim.base.errors import WrongSetting
from sim.base.nearest import nearest
from sim.base.units import number_or_text
from sim.platform.catalogue import OFFERS

USD = "USD"
CURRENCY = re.compile(r"\s*([A-Za-z]{2,8})\s*=\s*([0-9.eE+-]+)\s*")
AMOUNT = re.compile(r"\s*([0-9.eE+-]+)\s*([A-Za-z]{2,8})\s*")
PERCENT = re.compile(r"\s*([0-9.eE+-]+)\s*%\s*")
LEAST, MOST = 1e-9, 1e9  # units of a currency for one USD


class Currency(NamedTuple):
    """A currency to print money in.

    Args:
        per_usd: units of it for one USD.
    """

    name: str = USD
    per_usd: float = 1.0


def currency(text: object) -> Currency:
    """The currency and its rate in "EUR=0.92".

    Raises:
        WrongSetting: it has no name, or no rate.

    >>> currency("EUR=0.92")
    Currency(name='EUR', per_usd=0.92)
    """
    found = CURRENCY.fullmatch(str(text))
    rate = number_or_text(found[2]) if found else None
    if not found or not isinstance(rate, int | float) or not LEAST <= rate <= MOST:
        raise WrongSetting("currency", text, "NAME=RATE, units of it for one USD, as EUR=0.92")
    if found[1].upper() == USD and rate != 1:
        raise WrongSetting("currency", text, "a currency that is not USD, or USD=1")
    return Currency(found[1].upper(), float(rate))


def in_usd(setting: str, amount: Any, known: Currency) -> Any:
    """An amount in USD, where it is written with the name of a currency; as it is otherwise.

    Raises:
        WrongSetting: the currency has no rate.

    >>> in_usd("budget", "460 EUR", Currency("EUR", 0.92)), in_usd("budget", 3, Currency())
    (500.0, 3)
    """
    found = AMOUNT.fullmatch(amount) if isinstance(amount, str) else None
    number = number_or_text(found[1]) if found else None
    if not found or not isinstance(number, int | float):
        return amount
    rates = {USD: 1.0, known.name: known.per_usd}
    if found[2].upper() not in rates:
        allowed = f"an amount in {' or '.join(rates)}; of another currency with its rate, as --currency {found[2].upper()}=0.92"
        raise WrongSetting(setting, amount, allowed)
    return number / rates[found[2].upper()]


def share(given: Any) -> float:
    """A share below 1, written as one or in percent.

    Raises:
        ValueError: what is none.

    >>> share("15%"), share(0.2)
    (0.15, 0.2)
    """
    found = PERCENT.fullmatch(given) if isinstance(given, str) else None
    number = number_or_text(found[1]) if found else given
    whole = 100 if found else 1
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < whole:
        raise ValueError("a share from 0 to less than 1, such as 0.15 or 15%")
    return number / whole


def host_and_offer(setting: str, text: str) -> tuple[str, str]:
    """The host, and the offer behind a colon, of HOST or HOST:OFFER; without one the offer is empty.

    Raises:
        WrongSetting: there is no such offer.

    >>> host_and_offer("prices", "p5.48xlarge:spot")
    ('p5.48xlarge', 'spot')
    """
    host, colon, offer = text.rpartition(":")
    if not colon or "/" in offer or "." in offer:  # a path, whose name has a colon
        return text, ""
    if offer not in OFFERS:
        raise WrongSetting(setting, text, f"HOST or HOST:OFFER with one of {', '.join(OFFERS)}{nearest(offer, OFFERS)}")
    return host, offer


def converted(
    table: Mapping[str, Any], known: Currency, names: tuple[str, ...], tables: tuple[str, ...]
) -> dict[str, Any]:
    """A question's table with its amounts in USD: of these names, and in the tables of these names."""
    found = {name: in_usd(name, table[name], known) for name in names if name in table}
    for name in tables:
        if isinstance(several := table.get(name), dict):
            found[name] = {key: in_usd(f"{name}: {key}", amount, known) for key, amount in several.items()}
    return {**table, **found}
