"""Typed client of itan, a streaming anomaly-detection service: `Client`, and `AsyncClient` with the same methods."""

from itan_client.answers.density import Band, DensityGrid, LogDensity, Model
from itan_client.answers.events import Event, LabelsGiven, LogReplaced, ModelGrown, SamplesSeen, StreamDeleted
from itan_client.answers.history import History, InspectedSample, LoggedSample, Review
from itan_client.answers.incidents import Incident, IncidentFeature
from itan_client.answers.ingest import Ingested, RefusedRecord
from itan_client.answers.rules import Rule, RuleTest
from itan_client.answers.samples import Costs, Explanation, Feedback, Observed
from itan_client.answers.sources import Source
from itan_client.answers.streams import (
    Checked,
    Estimate,
    Repaired,
    Stream,
    StreamGroup,
    StreamSummary,
    StreamTotals,
)
from itan_client.answers.templates import Template
from itan_client.answers.windows import Window
from itan_client.async_client import AsyncClient
from itan_client.client import Client
from itan_client.connection import DEFAULT_URL
from itan_client.errors import ApiError, ServiceUnreachable
from itan_client.request import Page, Request

__all__ = [
    "DEFAULT_URL",
    "ApiError",
    "AsyncClient",
    "Band",
    "Checked",
    "Client",
    "Costs",
    "DensityGrid",
    "Estimate",
    "Event",
    "Explanation",
    "Feedback",
    "History",
    "Incident",
    "IncidentFeature",
    "Ingested",
    "InspectedSample",
    "LabelsGiven",
    "LogDensity",
    "LogReplaced",
    "LoggedSample",
    "Model",
    "ModelGrown",
    "Observed",
    "Page",
    "RefusedRecord",
    "Repaired",
    "Request",
    "Review",
    "Rule",
    "RuleTest",
    "SamplesSeen",
    "ServiceUnreachable",
    "Source",
    "Stream",
    "StreamDeleted",
    "StreamGroup",
    "StreamSummary",
    "StreamTotals",
    "Template",
    "Window",
]
