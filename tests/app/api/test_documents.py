import json

from app.api.schemas import FeedbackAnswer, Model, ObserveAnswer, StreamDescription
from app.main import ROUTES
from tests.app.harness import blobs


async def test_every_route_is_documented_with_its_bodies(service):
    document = (await service.http.get("/openapi.json")).json()
    for route in ROUTES:
        (method,) = route.methods
        described = document["paths"][route.path][method.lower()]
        assert described["summary"]
        good = [answer for status, answer in described["responses"].items() if status.startswith("2")]
        assert len(good) == 1
        assert "content" in good[0] or method == "DELETE"
        assert "application/problem+json" in described["responses"]["4XX"]["content"]
        if route.path in ("/observe", "/feedback", "/density") and method == "POST":
            assert described["requestBody"]["content"]


async def test_every_reference_leads_somewhere(service):
    document = (await service.http.get("/openapi.json")).json()
    text = json.dumps(document)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in document["components"]["schemas"]
    assert "ValidationError" not in text


async def test_the_documents_are_open_to_read(service):
    assert (await service.http.get("/docs")).status_code == 200


async def test_answers_have_the_documented_fields(service):
    answer = await service.accepted("POST", "/observe?stream=s&explain=true", json={"samples": blobs(40).tolist()})
    assert set(answer) == set(ObserveAnswer.__struct_fields__) - {"as_of_seq"}
    assert set(await service.feedback({"seq": 1, "anomaly": True})) == set(FeedbackAnswer.__struct_fields__)
    assert set(await service.accepted("GET", "/streams/s")) == set(StreamDescription.__struct_fields__)
    assert set(await service.accepted("GET", "/density?stream=s")) == set(Model.__struct_fields__)
