"""The app: the only place that puts the concrete objects together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path

import msgspec
from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp

from app.api import (
    band,
    cloning,
    density,
    events,
    feedback,
    found_incidents,
    health,
    histories,
    ingest,
    listing,
    observe,
    page,
    repairs,
    rules,
    session,
    sources,
    streams,
    templates,
    windows,
    workers,
)
from app.api.measuring import Measured
from app.api.openapi import document
from app.api.problems import handle_problems
from app.api.requests import Logged
from app.api.routing import JSON, Route
from app.api.service import Service
from app.build import installed_version
from app.metrics import Metrics
from app.notices.audience import Audience
from app.notices.catalog import rules_in
from app.notices.delivery import Delivery
from app.notices.outbox import Outbox
from app.notices.sender import Sender
from app.secret_files import credentials
from app.security import KeptBytes, KeyFile, KeyRing, KeyWatch, Quotas
from app.settings import Settings
from app.sources.catalog import sources_in
from app.storage import Store, open_store
from app.storage.archive import open_archive
from app.streams.log.archive.archive import Archive
from app.streams.maintenance.archiver import Archiver
from app.streams.maintenance.checker import Checker
from app.streams.maintenance.compactor import Compactor
from app.streams.maintenance.snapshotter import Snapshotter
from app.streams.maintenance.store_opening import StoreOpening
from app.streams.maintenance.store_probe import StoreProbe
from app.streams.maintenance.summarizer import Summarizer
from app.streams.maintenance.sweeper import Sweeper
from app.streams.open.clock import Clock
from app.streams.open.gauges import Gauges
from app.streams.open.registry import Registry
from app.streams.open.shutdown import shut_down
from app.streams.open.worker import Worker
from app.streams.views.catalog import Catalog
from app.templates import defaults_of, templates_in
from app.windows import Planned, windows_in
from app.workers.following import Following
from app.workers.forwarder import Forwarder
from app.workers.peers import Peers
from app.workers.signatures import Signatures

# otherwise FastAPI asks for OpenTelemetry's providers at each request; /metrics tells enough
NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
RESOURCES = (
    observe,
    ingest,
    feedback,
    density,
    band,
    listing,
    streams,
    cloning,
    sources,
    templates,
    windows,
    rules,
    repairs,
    histories,
    found_incidents,
    events,
    health,
    session,
    page,
)
ROUTES: list[Route] = [route for resource in RESOURCES for route in resource.ROUTES]


def create_app(settings: Settings, *, store: Store | None = None, clock: Clock | None = None) -> FastAPI:
    """Make the service; OpenBindRefused, SecretNeeded or InvalidKeys if it is not safe to start."""
    settings.refuse_open_bind()
    settings.refuse_unsigned()
    clock = clock or Clock()
    keys = KeyRing.parse(settings.api_keys.get_secret_value(), clock.now, settings.hosts)
    metrics = Metrics(installed_version(), watched=settings.watched_streams, top=settings.metrics_top_streams)
    key_watch = watch_of(settings, keys, clock, metrics)
    store = store or open_store(settings.store, settings.durability)
    store.write_refusals.on_refusal = lambda cause: metrics.refused_writes[cause].inc()
    kept_templates, audience = templates_in(store, clock, settings.max_templates), Audience()
    kept_windows = windows_in(store, clock, settings.max_windows)
    worker = Worker.of(
        store,
        settings,
        clock,
        metrics,
        defaults_of=partial(defaults_of, kept_templates),
        tells_of=audience.is_told_of,
        schedule=Planned(kept_windows, clock),
        archive=archive_of(settings, metrics),
    )
    registry = Registry(worker)
    checker = Checker(registry)
    metrics.watch(Gauges(registry), memory_budget_bytes=settings.memory_budget_bytes)
    secret, address = settings.worker_secret.get_secret_value(), settings.advertise_url
    signatures = Signatures(secret, address, clock.now)
    peers = Peers(signatures, clock, settings.forward_seconds, settings.lease_seconds)
    quotas, kept = Quotas(store.windows, clock.monotonic), KeptBytes(store, clock.monotonic)
    service = Service(
        settings=settings,
        keys=keys,
        key_watch=key_watch,
        quotas=quotas,
        kept=kept,
        store_opening=StoreOpening(store, clock),
        store_probe=StoreProbe(store),
        registry=registry,
        catalog=Catalog(registry, store),
        forwarder=Forwarder(registry, peers, metrics, address),
        following=Following(registry),
        signatures=signatures,
        sources=sources_in(store, clock, settings.max_sources),
        rules=rules_in(store, clock, settings.max_rules),
        templates=kept_templates,
        windows=kept_windows,
        outbox=Outbox(store),
        sender=Sender(allow_private=settings.notices_allow_private),
        checker=checker,
        metrics=metrics,
    )
    app = ItanApp(lifespan=lifespan, redirect_slashes=False, openapi_url=None, telemetry=NO_TELEMETRY)
    app.state.service, app.state.store = service, store
    app.state.assets = page.read_assets()
    app.state.sweeper = Sweeper(registry)
    app.state.archiver = None if worker.archive is None else Archiver(registry, worker.archive)
    app.state.delivery = Delivery(worker, service.rules, audience, service.sender)
    app.state.snapshotter = Snapshotter(registry, checker)
    app.state.compactor = Compactor(worker)
    app.state.summarizer = Summarizer(registry, service.catalog.fleet.fill)
    app.state.openapi = interface(keys_required=keys.are_required)
    served = [*ROUTES, *(workers.ROUTES if address else [])]
    app.router.routes += served
    metrics.know_problems(ingest.OF_RECORD)
    metrics.know_routes((route.path, route.method) for route in served)
    app.add_middleware(Measured, metrics=metrics)
    handle_problems(app)
    return app


@cache
def interface(*, keys_required: bool) -> page.Asset:
    """Describe the interface, which is the same in every app of this process."""
    described = document(ROUTES, installed_version(), keys_required=keys_required)
    return page.asset(msgspec.json.encode(described), JSON)


def archive_of(settings: Settings, metrics: Metrics) -> Archive | None:
    """Open the archive, if there is one."""
    if not settings.archive:
        return None
    files = open_archive(settings.archive, credentials(settings.secrets_folder))
    return Archive(files, metrics, settings.archive_cache_mb * 2**20)


def watch_of(settings: Settings, keys: KeyRing, clock: Clock, metrics: Metrics) -> KeyWatch | None:
    """Read the file of keys, if there is one, and watch it from then on."""
    if not settings.api_keys_file:
        return None
    return KeyWatch(keys, KeyFile(Path(settings.api_keys_file)), clock, metrics)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the store; at the end become unready, finish work, store snapshots, release leases, close the store."""
    service: Service = app.state.service
    snapshotter: Snapshotter = app.state.snapshotter
    sweeper: Sweeper = app.state.sweeper
    delivery: Delivery = app.state.delivery
    summarizer: Summarizer = app.state.summarizer
    compactor: Compactor = app.state.compactor
    leases = service.registry.worker.leases
    store: Store = app.state.store
    await service.store_opening.start()
    leases.start()
    snapshotter.start()
    sweeper.start()
    summarizer.start()
    compactor.start()
    delivery.start()
    if app.state.archiver:
        app.state.archiver.start()
    if service.key_watch:
        service.key_watch.start()
    try:
        yield
    finally:
        service.stop_soon()
        if service.key_watch:
            await service.key_watch.stop()
        await service.kept.stop()
        await service.store_opening.stop()
        await delivery.stop()
        await service.sender.close()
        await sweeper.stop()
        await summarizer.stop()
        if app.state.archiver:
            await app.state.archiver.stop()
        await snapshotter.stop()
        await compactor.stop()
        await shut_down(service.tasks, service.registry, service.settings.shutdown_seconds)
        await leases.stop()
        await service.forwarder.close()
        await store.close()


class ItanApp(FastAPI):
    """FastAPI, with the request log around all of it."""

    def build_middleware_stack(self) -> ASGIApp:
        """Put the log outermost, so that it also sees the answer to a failure."""
        settings: Settings = self.state.service.settings
        return Logged(super().build_middleware_stack(), settings.log_level, with_values=settings.log_values)
