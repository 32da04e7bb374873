"""Settings of one service process, read from ITAN_ environment variables."""

import ipaddress
from enum import StrEnum
from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from app.hosts import ANY, Hosts
from app.logs.choices import LogFormat, LogLevel
from app.secret_files import SecretFiles
from app.storage import Durability

Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SECRET_CHARACTERS = 16
SNAPSHOTS_PER_HORIZON = 20


class WithoutKey(StrEnum):
    """What /metrics shows without a key, if the service asks for keys."""

    ALL = "all"
    NUMBERS = "numbers"
    NOTHING = "nothing"


class OpenBindRefused(ValueError):
    """The service would accept other machines without a key."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"refusing to listen on {host!r} without keys: set ITAN_API_KEYS or ITAN_API_KEYS_FILE,"
            " or ITAN_ALLOW_OPEN=true"
        )


class SecretNeeded(ValueError):
    """Other workers are to send records here, but nothing tells them from strangers."""

    def __init__(self) -> None:
        super().__init__(f"ITAN_ADVERTISE_URL needs ITAN_WORKER_SECRET, of at least {SECRET_CHARACTERS} characters")


class Settings(BaseSettings):
    """What the operator decides; each field is the environment variable ITAN_<NAME>, or a file of that name."""

    # a rejected value may be a key or a password in a store's address: it must not be echoed
    model_config = SettingsConfigDict(env_prefix="ITAN_", frozen=True, extra="forbid", hide_input_in_errors=True)

    host: str = Field("127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one")
    store: str = Field(
        "sqlite:///itan.db",
        min_length=1,
        repr=False,
        description="URL of the store that keeps the streams: SQLite, Redis, Sentinel, Cluster or memory",
    )
    durability: Durability = Field(
        Durability.PROCESS, description="what an acknowledged event survives: process, fsync or replicas"
    )
    worker: str = Field(
        "",
        max_length=200,
        description="name of this worker; a restart under the same name takes its streams back at once; empty: a"
        " new name",
    )
    lease_seconds: float = Field(
        5.0, ge=0.1, le=3600, description="how long a dead worker keeps its streams from the others"
    )
    handover_seconds: float = Field(
        1.0,
        ge=0,
        le=60,
        description="how long a request waits for another worker to hand its stream over; 0: it does not wait",
    )
    advertise_url: str = Field(
        "",
        max_length=200,
        pattern=r"^(https?://[^\s/?#@]+)?$",
        description="address at which other workers reach this one, e.g. http://itan-2:8000, to send it records of"
        " POST /ingest for streams that it holds; empty: streams move to the worker that gets their records",
    )
    worker_secret: SecretStr = Field(
        SecretStr(""), description="secret of at least 16 characters by which workers know each other"
    )
    forward_seconds: Seconds = Field(30.0, description="how long another worker may take to answer records sent to it")
    api_keys: SecretStr = Field(
        SecretStr(""),
        description="comma-separated key[:scopes[:streams]], e.g. k1,k2:read+observe,k3:label:plant-*; empty: none",
    )
    api_keys_file: str = Field(
        "", description="file of hashed keys, one line each as `itan keys new` prints it; read again when it changes"
    )
    secrets_folder: str = Field(
        "",
        description="folder with files that are named like settings, such as ITAN_WORKER_SECRET, and hold their values;"
        " a file counts before a variable",
    )
    session_seconds: int = Field(
        43_200, ge=1, le=31_536_000, description="how long a browser stays signed in to the live page"
    )
    allowed_hosts: str = Field(
        "",
        max_length=4096,
        description="comma-separated host names that requests may use, * for any; empty: any name, but without keys on"
        " loopback only localhost and addresses",
    )
    allow_open: bool = Field(False, description="allow listening on a non-loopback address without keys")
    auto_create: bool = Field(True, description="create a stream when its first samples come")
    snapshot_replay_seconds: Seconds = Field(
        0.005,
        description="store a snapshot of a stream when a replay of what came after the last one would take this much"
        " CPU time",
    )
    snapshot_every_seconds: Seconds = Field(
        21_600.0, description="store a snapshot of a stream at the latest this long after it changed"
    )
    compact_log: bool = Field(
        True, description="move what is older than a snapshot into blocks, which earlier versions cannot read"
    )
    label_horizon_samples: Count | None = Field(
        None, description="how many of a stream's newest samples can be labelled; default 1000000, on Redis 100000"
    )
    label_horizon_seconds: Seconds = Field(604_800.0, description="how long a sample can be labelled")
    log_samples: Count | None = Field(
        None, description="how many of a stream's newest samples stay in the store; default: all that can be labelled"
    )
    log_seconds: Seconds | None = Field(
        None, description="how long a sample stays in the store; default: as long as it can be labelled"
    )
    log_bytes: int | None = Field(
        None,
        ge=65_536,
        description="how many bytes of a stream's log up to its snapshot stay in the store, at least 65536, about a"
        " block; default: no limit",
    )
    archive: str = Field(
        "",
        repr=False,
        description="folder or bucket (file:///path, s3://bucket/prefix) for older parts of logs, which can still be"
        " labelled there; empty: none",
    )
    archive_cache_mb: float = Field(
        64.0, gt=0, allow_inf_nan=False, description="memory for parts of logs that were read from the archive"
    )
    max_head_bytes: int = Field(65_536, ge=1024, description="most bytes of a request line and its headers")
    max_connections: Count | None = Field(
        None,
        description="most connections; beyond them only probes are answered; default 4096, or fewer if the process may"
        " open fewer files",
    )
    head_seconds: Seconds = Field(10.0, description="how long the head of a request may take to arrive")
    keep_alive_seconds: Seconds = Field(75.0, description="how long an idle connection stays open for another request")
    stall_seconds: Seconds = Field(
        30.0,
        description="time over which ITAN_MIN_BYTES_PER_SECOND is measured; a transfer that is slower ends",
    )
    min_bytes_per_second: float = Field(
        100.0,
        gt=0,
        allow_inf_nan=False,
        description="lowest speed at which a body may arrive and an answer may be read",
    )
    body_budget_mb: float = Field(
        512.0,
        gt=0,
        allow_inf_nan=False,
        description="memory for request bodies; beyond it the body that has been arriving longest is refused",
    )
    max_body_bytes: Count = Field(16_777_216, description="most bytes of a request body")
    max_import_bytes: Count = Field(268_435_456, description="most bytes of an import")
    max_batch_samples: Count = Field(10_000, description="most samples or points in one request")
    max_batch_streams: Count = Field(2_000, description="most streams in one POST /ingest")
    max_sources: Count = Field(100, description="most sources in the store")
    max_rules: Count = Field(50, description="most rules of notices in the store")
    max_templates: Count = Field(100, description="most templates in the store")
    max_windows: Count = Field(100, description="most maintenance windows in the store")
    max_labels: Count = Field(10_000, description="most labels in one request")
    max_streams: Count = Field(100_000, description="most streams in the store")
    max_watchers: Count = Field(200, description="most event streams that one worker sends at once")
    max_key_watchers: Count = Field(150, description="most event streams that one worker sends at once to one key")
    memory_budget_mb: float = Field(
        1024.0,
        gt=0,
        allow_inf_nan=False,
        description="memory for open streams; beyond it the least recently used are closed until they are needed again",
    )
    idle_seconds: Seconds = Field(3600.0, description="close a stream that nobody has used for this long")
    stream_ttl: str = Field(
        "",
        max_length=8000,
        description="comma-separated NAME=TIME, e.g. pod-*=30d,*=0: delete streams that are silent for this long; the"
        " first name that matches decides, 0 means never",
    )
    sweep_seconds: Seconds = Field(
        3600.0, description="how often to look for silent streams, to trim their logs and to delete them"
    )
    timestamp_allowance_seconds: float = Field(
        3600.0,
        ge=0,
        allow_inf_nan=False,
        description="how far a sample's timestamp may be ahead of the service's clock, and behind the newest one if"
        " the config uses time",
    )
    strict_replay: bool = Field(False, description="refuse a stream whose replayed scores differ from the logged ones")
    notices_allow_private: bool = Field(
        False,
        description="send notices to private and loopback addresses too, such as an Alertmanager beside the service",
    )
    public_url: str = Field(
        "",
        max_length=2048,
        description="where people reach the live page, for links in notices and /incidents; empty: none in notices",
    )
    metrics_streams: str = Field(
        "",
        max_length=8000,
        description="comma-separated ids of streams that always have metrics of their own",
    )
    metrics_top_streams: int = Field(
        20, ge=0, le=50, description="how many other streams also have them: those flagged most often"
    )
    metrics_without_key: WithoutKey = Field(
        WithoutKey.NUMBERS,
        description="what /metrics shows without a key if keys are set: all, numbers (no stream names) or nothing",
    )
    drain_seconds: float = Field(
        0.0,
        ge=0,
        le=3600,
        description="how long requests are still taken after SIGTERM, while /readyz tells the proxy to send no more",
    )
    shutdown_seconds: Seconds = Field(20.0, description="how long running requests and snapshots may take at shutdown")
    log_level: LogLevel = Field(LogLevel.INFO, description="how much to log: debug, info, warning or error")
    log_format: LogFormat | None = Field(
        None, description="json or console; default console if stderr is a terminal, else json"
    )
    log_values: bool = Field(False, description="log what clients sent when it is refused")

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *_: PydanticBaseSettingsSource, **named: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let flags count before files, and files before variables: an empty variable hides no secret."""
        return named["init_settings"], SecretFiles(settings_cls), named["env_settings"]

    @property
    def watched_streams(self) -> list[str]:
        """Give the streams that always have metrics of their own."""
        return [name.strip() for name in self.metrics_streams.split(",") if name.strip()]

    @property
    def memory_budget_bytes(self) -> float:
        """Give the memory for open streams in bytes."""
        return self.memory_budget_mb * 2**20

    @property
    def horizon_samples(self) -> int:
        """Give how many samples can be labelled; without an archive only those in the store."""
        return self._labelled_samples if self.archive else self.kept_samples

    @property
    def horizon_seconds(self) -> float:
        """Give how long a sample can be labelled; without an archive only while it is in the store."""
        return self.label_horizon_seconds if self.archive else self.kept_seconds

    @property
    def kept_samples(self) -> int:
        """Give how many samples of a stream stay in the store."""
        return min(self._labelled_samples, self.log_samples or self._labelled_samples)

    @property
    def kept_seconds(self) -> float:
        """Give how long a sample stays in the store."""
        return min(self.label_horizon_seconds, self.log_seconds or self.label_horizon_seconds)

    @property
    def _labelled_samples(self) -> int:
        """Give the label horizon in samples; by default it is shorter on Redis, which keeps the log in memory."""
        return self.label_horizon_samples or (100_000 if self.store.startswith(("redis", "unix")) else 1_000_000)

    @property
    def snapshot_age_seconds(self) -> float:
        """Give the age at which a change must be in a snapshot: without one, a log is not trimmed to the horizon."""
        return min(self.snapshot_every_seconds, self.kept_seconds / SNAPSHOTS_PER_HORIZON)

    @property
    def hosts(self) -> Hosts:
        """Give the host names that requests may use."""
        names = [name.strip() for name in self.allowed_hosts.split(",") if name.strip()]
        is_guarded = self.asks_for_keys or not is_loopback(self.host)
        return Hosts(names or ([ANY] if is_guarded else []))

    @property
    def asks_for_keys(self) -> bool:
        """Tell whether requests need a key."""
        return bool(self.api_keys.get_secret_value().strip() or self.api_keys_file)

    def refuse_open_bind(self) -> None:
        """Raise OpenBindRefused if other machines could reach a service that needs no key."""
        if not (self.asks_for_keys or self.allow_open or is_loopback(self.host)):
            raise OpenBindRefused(self.host)

    def refuse_unsigned(self) -> None:
        """Raise SecretNeeded if the service would take records from whoever says that it is a worker."""
        if self.advertise_url and len(self.worker_secret.get_secret_value()) < SECRET_CHARACTERS:
            raise SecretNeeded


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
