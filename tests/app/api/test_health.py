from app.storage.base import StoreUnavailable
from app.storage.memory import MemoryStore
from tests.app.harness import DisturbedStore, Service, raising


async def test_probes_answer(service):
    assert (await service.accepted("GET", "/livez"))["status"] == "alive"
    ready = await service.accepted("GET", "/readyz")
    assert (ready["status"], ready["store"]) == ("ready", "available")
    assert "forgets" in ready["warnings"][0]


async def test_ready_while_the_store_is_down():
    store = DisturbedStore(MemoryStore())
    async with Service(store) as service:
        store.before["*"] = raising(StoreUnavailable("no route to host"))
        ready = await service.accepted("GET", "/readyz")
        assert (ready["status"], ready["store"], ready["reason"]) == ("ready", "unavailable", "no route to host")
        assert (await service.accepted("GET", "/livez"))["status"] == "alive"
        del store.before["*"]


async def test_not_ready_while_shutting_down(service):
    service.app.state.service.is_stopping = True
    answer = await service.http.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "stopping")
    assert (await service.http.get("/livez")).status_code == 200
