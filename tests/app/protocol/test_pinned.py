"""What we reach into: if uvicorn changes it, app/protocol must be read anew beside it."""

import hashlib
import inspect

import pytest
from uvicorn.protocols.http import flow_control, httptools_impl

KNOWN = {
    httptools_impl.HttpToolsProtocol: "18fdf324b11bf160",
    httptools_impl.RequestResponseCycle: "e67d470d435dcc1c",
    flow_control.FlowControl: "126debcdaa894c83",
}


@pytest.mark.parametrize("kind", KNOWN, ids=lambda kind: kind.__name__)
def test_uvicorn_is_the_one_that_was_read(kind):
    digest = hashlib.sha256(inspect.getsource(kind).encode()).hexdigest()
    assert digest[:16] == KNOWN[kind], "read what has changed, adapt app/protocol, and note the new digest here"
