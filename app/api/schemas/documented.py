"""Every body that the OpenAPI document describes."""

import msgspec

from app.api.schemas.density import DensityAnswer, DensityBody, DensityGrid, ExpectedBand, Model
from app.api.schemas.history import History, ReviewQueue, Sample
from app.api.schemas.incidents import IncidentAnswer, IncidentList
from app.api.schemas.ingest import IngestAnswer, IngestProblem, IngestRecord
from app.api.schemas.rules import RuleAnswer, RuleBody, RuleList, TestAnswer
from app.api.schemas.samples import (
    FeedbackAnswer,
    FeedbackBody,
    IncidentLabelBody,
    ObserveAnswer,
    ObserveBody,
    ObserveLine,
)
from app.api.schemas.service import Health, Problem
from app.api.schemas.session import SessionAnswer, SignInBody
from app.api.schemas.sources import SourceAnswer, SourceBody, SourceList
from app.api.schemas.streams import FleetAnswer, StreamDescription, StreamEstimate, StreamPage
from app.api.schemas.templates import TemplateAnswer, TemplateBody, TemplateList
from app.api.schemas.windows import WindowAnswer, WindowBody, WindowList
from app.streams.maintenance.repair import Checked, Repaired

DOCUMENTED: list[type[msgspec.Struct]] = [
    ObserveBody,
    ObserveLine,
    ObserveAnswer,
    IngestRecord,
    IngestAnswer,
    IngestProblem,
    SourceBody,
    SourceAnswer,
    SourceList,
    TemplateBody,
    TemplateAnswer,
    TemplateList,
    WindowBody,
    WindowAnswer,
    WindowList,
    RuleBody,
    RuleAnswer,
    RuleList,
    TestAnswer,
    FeedbackBody,
    IncidentLabelBody,
    FeedbackAnswer,
    IncidentAnswer,
    IncidentList,
    DensityBody,
    DensityAnswer,
    Model,
    DensityGrid,
    ExpectedBand,
    StreamDescription,
    StreamEstimate,
    History,
    Sample,
    ReviewQueue,
    StreamPage,
    FleetAnswer,
    SignInBody,
    SessionAnswer,
    Checked,
    Repaired,
    Health,
    Problem,
]
