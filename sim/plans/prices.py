"""The hosts that a question may choose, with their offers, and what an hour of one costs by each of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import WrongSetting, nearest
from sim.base.ranges import MOST_RANKS
from sim.platform import catalogue, cluster
from sim.platform.catalogue import OFFERS

if TYPE_CHECKING:
    from sim.plans.question import Question
    from sim.platform.cluster import Cluster


def host_and_offer(text: str) -> tuple[str, str]:
    """The host, and the offer behind a colon, of HOST or HOST:OFFER; without one the offer is empty.

    Raises:
        WrongSetting: there is no such offer.

    >>> host_and_offer("p5.48xlarge:spot")
    ('p5.48xlarge', 'spot')
    """
    host, colon, offer = text.rpartition(":")
    if not colon or "/" in offer or "." in offer:  # a path, whose name has a colon
        return text, ""
    if offer not in OFFERS:
        raise WrongSetting(
            "prices", text, f"HOST or HOST:OFFER with one of {', '.join(OFFERS)}{nearest(offer, OFFERS)}"
        )
    return host, offer


class Prices:
    """The prices that a question has.

    Args:
        question: whose hosts and prices are read.

    `most` has the largest number of each host, None without a limit; `of` USD an hour of one host, by host and offer.

    Raises:
        WrongSetting: a host or an offer that there is not, or a host without a price.
    """

    def __init__(self, question: Question):
        self.question = question
        self._known = self._given()
        self.most = self._hosts()
        self._check()
        self.of = {name: self._priced(name) for name in self.most}

    @property
    def notes(self) -> list[str]:
        """What the reader has to know of prices."""
        asked, found = self.question, []
        if asked.prices:
            found.append("prices are those that you gave, or else of the catalogue: sim.hosts show NAME says of when")
        for offer in asked.offers:
            if asked.hosts and (without := [name for name, prices in self.of.items() if offer not in prices]):
                found.append(f"no {offer} price of {', '.join(without)} is known: --price {without[0]}:{offer}=USD")
        if "spot" in asked.offers and not asked.failures_for("spot", 1.0, 1.0):
            found.append(
                "spot hosts may be taken away at any time, which is not counted: --failures spot:... says how often"
            )
        return found

    def given(self, name: str, offer: str) -> bool:
        """Whether the price of a host was given."""
        return (name, offer) in self._known

    def _given(self) -> dict[tuple[str, str], float]:
        """The prices that were given, by host and offer."""
        asked = self.question
        only = asked.offers[0] if len(asked.offers) == 1 else "on-demand"
        read_as = {text: host_and_offer(text) for text in asked.prices}
        return {(host, offer or only): asked.prices[text] for text, (host, offer) in read_as.items()}

    def _hosts(self) -> dict[str, int | None]:
        """The hosts that may be chosen, and the largest number of each; None without a limit."""
        if self.question.hosts:
            found: dict[str, int | None] = {}
            for name, most in map(limited, self.question.hosts):
                if found.setdefault(name, most) != most:
                    raise WrongSetting("hosts", f"{name}*{most}", f"each host once: {name} has another limit already")
            return found
        offers = {*self.question.offers}
        known = {name: {*kind.offered} for name, kind in catalogue.all_of("hosts").items() if kind.gpus}
        given = {host for host, offer in self._known if offer in offers}
        return {name: None for name, offered in known.items() if offers & offered or name in given}

    def _check(self) -> None:
        """Refuse what is given of a host that there is not; one that is not asked for may have a price."""
        kinds = catalogue.all_of("hosts")
        for name, _ in self._known:
            if not (name in self.most or name in kinds or Path(name).exists()):
                raise WrongSetting("prices", name, f"a host{nearest(name, [*self.most, *kinds], catalogue.PROPOSED)}")

    def _priced(self, name: str) -> dict[str, float]:
        """USD an hour of one host, by the offers that are asked for.

        Raises:
            WrongSetting: none of them has a price.
        """
        kind, asked = catalogue.all_of("hosts").get(name), self.question
        known = {one: of.usd_per_hour for one, of in kind.offered.items()} if kind else _in_file(name)
        known |= {offer: price for (host, offer), price in self._known.items() if host == name}
        found: dict[str, float] = {offer: known[offer] for offer in asked.offers if offer in known}
        if not found:
            read(name)  # which refuses what is no host
            offer = asked.offers[0]
            has = f"; known are {', '.join(known)}" if known else ""
            key = name if offer == "on-demand" else f"{name}:{offer}"
            raise WrongSetting(
                f"prices: {name}", None, f'USD an hour of one host, {offer}, as in prices = {{ "{key}" = 2.5 }}{has}'
            )
        return found


def _in_file(name: str) -> dict[str, float]:
    """USD an hour of one host of a cluster's file, the mean of them, as on demand; empty if the file does not say it."""
    found = read(name)
    return {"on-demand": found.usd_per_hour / sum(host.count for host in found.hosts)} if found.usd_per_hour else {}


def limited(text: str) -> tuple[str, int | None]:
    """A host, and how many there are at most, of HOST or HOST*N.

    Raises:
        WrongSetting: a number that there cannot be.
    """
    name, times, number = text.rpartition("*")
    if not times or Path(text).exists():
        return text, None
    if not name or not (number.isascii() and number.isdigit() and 1 <= int(number) <= MOST_RANKS):
        raise WrongSetting("hosts", text, f"HOST, or HOST*N with N from 1 to {MOST_RANKS:,}")
    return name, int(number)


def read(name: str) -> Cluster:
    """A kind of host, or a file.

    Raises:
        WrongSetting: there is none.
    """
    try:
        return cluster.read(name)
    except WrongSetting as error:
        raise error if error.setting != "--cluster" else WrongSetting("hosts", error.given, error.allowed) from error
