"""The detector that a new stream begins with."""

import logging

from app.storage import StoreCorrupt
from app.streams.errors import UnknownStream
from app.streams.open.models import WarmStart
from app.streams.open.session import Session
from core import Detector, DetectorConfig, InvalidConfig, InvalidSnapshot, InvalidState, NotReady

logger = logging.getLogger(__name__)


async def first_detector(session: Session, config: DetectorConfig, warm: WarmStart | None) -> Detector:
    """Make a detector with the model that the stream's template names; if it cannot have that, it starts cold."""
    if warm is None or warm.source == session.stream:
        return Detector(config)
    try:
        return Detector.warm_started(config, await session.model_of(warm.source), warm.samples)
    except (UnknownStream, StoreCorrupt, NotReady, InvalidConfig, InvalidSnapshot, InvalidState) as error:
        session.metrics.cold_starts.inc()
        text = "stream %s starts cold, without the model of %s: %s"
        logger.warning(text, session.stream, warm.source, error, extra={"stream": session.stream})
        return Detector(config)
