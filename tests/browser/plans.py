"""A plan that nobody simulated, for tests of its page."""

SAMPLES = 1_000_000
HOSTS = {"small": (0.53, 250), "large": (4.0, 1800)}  # USD an hour, samples/s


def made_up(timed: bool = False) -> dict:
    """A plan of 64 configurations; with an end of the training if it is `timed`."""
    rows = [
        row(host, protocol, hosts, batch, timed)
        for host in HOSTS
        for protocol in ("allreduce", "ps-sync")
        for hosts in (1, 2, 3, 4, 6, 8, 12, 16)
        for batch in (32, 64)
    ]
    return {
        "schema": "plan/1",
        "question": {
            "workload": "mlp",
            "samples_per_s": 1500.0,
            "deadline": 7200.0 if timed else None,
            "probability": 0.9,
        },
        "best": rows[:3],
        "front": rows[:4],
        "by_number": [],
        "rows": rows,
        "rejected": {"too slow": 12},
        "sensitivity": [
            {
                "parameter": "network",
                "samples_per_s": {"low": 1.0, "high": 2.0},
                "choice_changes": 0.4,
                "measured_by": "real.probe",
            }
        ],
    }


def row(host: str, protocol: str, hosts: int, batch: int, timed: bool) -> dict:
    """One configuration; no two cost the same."""
    price, speed = HOSTS[host]
    speed *= hosts / (1 + hosts / {"allreduce": 60, "ps-sync": 20}[protocol]) * {32: 0.9, 64: 1.0}[batch]
    per_hour = price * hosts * {"allreduce": 1.0, "ps-sync": 1.01}[protocol] * {32: 1.001, 64: 1.0}[batch]
    hours = SAMPLES / speed / 3600 if timed else None
    servers = int(protocol == "ps-sync")
    return {
        "protocol": protocol, "settings": [], "host": host, "hosts": hosts,
        "hosts_told": f"{hosts} x {host}", "workers": hosts, "servers": servers, "batch": batch,
        "samples_per_s": {"low": speed * 0.9, "mid": speed, "high": speed / 0.9}, "usd_per_hour": per_hour,
        "hours": hours, "usd": hours and hours * per_hour, "p_target": 0.9, "limits": "network",
        "command": f"python -m sim.run --protocol {protocol} --workers {hosts} --cluster {host}*{hosts} --batch {batch}",
    }  # fmt: skip
