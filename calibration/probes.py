"""Measurements by real.probe, as calibration reads them: links, cores, sleeps."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from calibration.servers import FurtherServer
from sim.base.errors import WrongSetting, from_validation
from sim.base.files import reading
from sim.base.ranges import Cores, LogSpread, Seconds
from sim.platform.cluster import Link

SCHEMA = "probe/2"  # of its file; in probe/1, links contained the sleeps of the probe's ranks


class Measured(Link):
    """A link as it was probed; the times that it was worked out from are passed over.

    Args:
        late_s: half a sleep between polls, after which on average a rank of the probe saw a message; it is not in the latency.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    late_s: Seconds = 0.0

    def link(self, polls: bool) -> Link:
        """The link for a simulation whose waiting ranks sleep between polls; without these sleeps its latency contains them."""
        late_s = 0.0 if polls else self.late_s
        return Link(**{**self.model_dump(exclude={"late_s"}), "latency_s": self.latency_s + late_s})


class Probe(BaseModel):
    """Measurements of one machine by real.probe; keys that are not needed here are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    cores: Cores
    oversleep_s: Seconds = 0.0
    oversleep_spread: LogSpread | None = None
    further_server: dict[str, FurtherServer] = {}  # by way of updating
    local: Measured | None = None
    network: Measured | None = None
    library: Measured | None = None

    @model_validator(mode="after")
    def _has_a_link(self):
        if not (self.local or self.network):
            raise ValueError("local or network, the link that was probed")
        return self

    def links(self, polls: bool) -> dict[str, Link]:
        """The probed links by their names in a cluster; see Measured.link."""
        return {name: link.link(polls) for name in ("local", "network", "library") if (link := getattr(self, name))}


def read(path: str) -> Probe:
    """The probe in a JSON file.

    Raises:
        WrongSetting: no such file, not JSON, of another schema, a key missing or wrong.
    """
    with reading("--probe", path):
        text = Path(path).read_bytes()
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongSetting("--probe", path, f"JSON written by real.probe ({error})") from error
    schema = table.get("schema", SCHEMA) if isinstance(table, dict) else SCHEMA
    if schema != SCHEMA:
        raise WrongSetting(f"{path}: schema", schema, f"{SCHEMA} (probe again with real.probe)")
    try:
        return Probe.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise from_validation(path, error) from error
