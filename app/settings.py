"""Settings of one service process, read from ITAN_ environment variables."""

import ipaddress
from enum import StrEnum
from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.hosts import ANY, Hosts
from app.logs.choices import LogFormat, LogLevel
from app.storage.base import Durability

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class WithoutKey(StrEnum):
    """What /metrics tells who shows no key, where keys are asked for."""

    ALL = "all"
    NUMBERS = "numbers"
    NOTHING = "nothing"


class OpenBindRefused(ValueError):
    """The service would listen to other machines and ask nobody for a key."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"refusing to listen on {host!r} without keys: set ITAN_API_KEYS or ITAN_API_KEYS_FILE,"
            " or ITAN_ALLOW_OPEN=true"
        )


class Settings(BaseSettings):
    """What the operator decides; each field is the environment variable ITAN_<NAME>."""

    # a rejected value may be a key or a password in a store's address: it must not be echoed
    model_config = SettingsConfigDict(env_prefix="ITAN_", frozen=True, extra="forbid", hide_input_in_errors=True)

    host: str = Field("127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    store: str = Field(
        "sqlite:///itan.db",
        min_length=1,
        repr=False,
        description="where streams are kept, as a URL: SQLite, Redis, Sentinel, Cluster or memory",
    )
    durability: Durability = Field(
        Durability.PROCESS, description="what an acknowledged event survives: process, fsync or replicas"
    )
    worker: str = Field(
        "",
        max_length=200,
        description="this worker's name: a restart under it takes its streams back at once; empty: a new one",
    )
    lease_seconds: float = Field(
        5.0, ge=0.1, le=3600, description="how long a worker that has died keeps its streams from the others"
    )
    handover_seconds: float = Field(
        1.0,
        ge=0,
        le=60,
        description="how long a request waits for another worker to hand its stream over; 0: it is refused at once",
    )
    api_keys: SecretStr = Field(
        SecretStr(""),
        description="comma separated key[:scopes[:streams]], e.g. k1,k2:read+observe,k3:label:plant-*; empty: no key",
    )
    api_keys_file: str = Field(
        "", description="file of hashed keys, one line each as `itan keys new` prints it; read again when it changes"
    )
    session_seconds: int = Field(
        43_200, ge=1, le=31_536_000, description="how long a browser stays signed in to the live page"
    )
    allowed_hosts: str = Field(
        "",
        max_length=4096,
        description="comma separated names that requests may bear, * for any; empty: without keys on loopback only"
        " localhost and addresses, else any",
    )
    allow_open: bool = Field(False, description="allow listening on a non-loopback address without keys")
    auto_create: bool = Field(True, description="create a stream at its first observe")
    snapshot_every_events: Count = Field(1000, description="snapshot a stream after so many logged events")
    snapshot_every_seconds: Seconds = Field(30.0, description="snapshot a changed stream after so long")
    label_horizon_samples: Count | None = Field(
        None, description="how many of a stream's newest samples can be labelled; by default 1000000, on Redis 100000"
    )
    label_horizon_seconds: Seconds = Field(604_800.0, description="how long a sample can be labelled")
    max_head_bytes: int = Field(65_536, ge=1024, description="longest request line with its headers")
    max_connections: Count | None = Field(
        None,
        description="most connections, beyond which only probes are answered; by default 4096, or fewer where the"
        " process may open fewer files",
    )
    head_seconds: Seconds = Field(10.0, description="time for the head of a request")
    keep_alive_seconds: Seconds = Field(75.0, description="how long a connection is kept open for another request")
    stall_seconds: Seconds = Field(
        30.0,
        description="time within which a body must come on, and an answer be read on, by ITAN_MIN_BYTES_PER_SECOND",
    )
    min_bytes_per_second: float = Field(
        100.0, gt=0, allow_inf_nan=False, description="slowest that a body may come and an answer may be read"
    )
    body_budget_mb: float = Field(
        512.0,
        gt=0,
        allow_inf_nan=False,
        description="memory for bodies of requests; beyond it the one that has been coming longest is refused",
    )
    max_body_bytes: Count = Field(16_777_216, description="longest request body")
    max_import_bytes: Count = Field(268_435_456, description="longest body of a stream's import")
    max_batch_samples: Count = Field(10_000, description="most samples or points in one request")
    max_labels: Count = Field(10_000, description="most labels in one request")
    max_streams: Count = Field(100_000, description="most streams in the store")
    max_watchers: Count = Field(200, description="most event streams that one worker sends at once")
    max_key_watchers: Count = Field(150, description="most event streams that one worker sends at once for one key")
    memory_budget_mb: float = Field(
        1024.0,
        gt=0,
        allow_inf_nan=False,
        description="memory for open streams; the least recently used beyond it are closed until they are asked for",
    )
    idle_seconds: Seconds = Field(3600.0, description="close a stream that nobody has asked for so long")
    stream_ttl: str = Field(
        "",
        max_length=8000,
        description="comma separated NAME=TIME, e.g. pod-*=30d,*=0: streams silent for so long are deleted;"
        " the first name that fits counts, 0 is never",
    )
    sweep_seconds: Seconds = Field(
        3600.0, description="how often silent streams are looked through, to trim their logs and to delete them"
    )
    timestamp_allowance_seconds: float = Field(
        3600.0,
        ge=0,
        allow_inf_nan=False,
        description="how far a sample's timestamp may lie ahead of the service's clock,"
        " and behind the newest one where the config uses time",
    )
    strict_replay: bool = Field(False, description="refuse a stream whose replayed scores differ from the logged ones")
    metrics_streams: str = Field(
        "",
        max_length=8000,
        description="comma separated ids of streams that have metrics of their own, whatever happens",
    )
    metrics_top_streams: int = Field(
        20, ge=0, le=50, description="how many other streams have them too: those that are flagged most often"
    )
    metrics_without_key: WithoutKey = Field(
        WithoutKey.NUMBERS,
        description="what /metrics tells without a key where keys are set: all, numbers (no stream by name) or nothing",
    )
    drain_seconds: float = Field(
        0.0,
        ge=0,
        le=3600,
        description="how long requests are still taken after SIGTERM, while /readyz tells the proxy to send no more",
    )
    shutdown_seconds: Seconds = Field(20.0, description="time for running requests and snapshots at shutdown")
    log_level: LogLevel = Field(LogLevel.INFO, description="how much is logged: debug, info, warning or error")
    log_format: LogFormat | None = Field(
        None, description="json or console; by default console where stderr is a terminal, else json"
    )
    log_values: bool = Field(False, description="log what clients sent where it is refused")

    @property
    def watched_streams(self) -> list[str]:
        """Give the streams that have metrics of their own."""
        return [name.strip() for name in self.metrics_streams.split(",") if name.strip()]

    @property
    def memory_budget_bytes(self) -> float:
        """Give the memory for open streams in bytes."""
        return self.memory_budget_mb * 2**20

    @property
    def horizon_samples(self) -> int:
        """Give the label horizon in samples, less by default where the log is held in memory by a Redis."""
        return self.label_horizon_samples or (100_000 if self.store.startswith(("redis", "unix")) else 1_000_000)

    @property
    def hosts(self) -> Hosts:
        """Give the names that requests may bear."""
        names = [name.strip() for name in self.allowed_hosts.split(",") if name.strip()]
        is_guarded = self.asks_for_keys or not is_loopback(self.host)
        return Hosts(names or ([ANY] if is_guarded else []))

    @property
    def asks_for_keys(self) -> bool:
        """Tell whether a key is asked for."""
        return bool(self.api_keys.get_secret_value().strip() or self.api_keys_file)

    def refuse_open_bind(self) -> None:
        """Raise OpenBindRefused when strangers could reach a service that asks for no key."""
        if not (self.asks_for_keys or self.allow_open or is_loopback(self.host)):
            raise OpenBindRefused(self.host)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
