"""Compressed bodies: taken on every route as if they were not, and bounded by what they decode to."""

import gzip
import json
import zlib

import pytest

from app.api.bodies.encodings import MOST_PARTS, PIECE_BYTES, Undecodable, decoded_pieces, zstd
from tests.app.harness import Service, blobs

ENCODERS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "GZIP": gzip.compress, "zstd": zstd.compress}
JSON = {"Content-Type": "application/json"}


def decode(body: bytes, encoding: str) -> bytes:
    return b"".join(decoded_pieces(body, encoding))


@pytest.mark.parametrize("encoding", ENCODERS)
async def test_a_compressed_body_is_read_like_a_plain_one(service, encoding):
    X = blobs(200)
    plain = await service.observe(X, "plain")
    body = ENCODERS[encoding](json.dumps({"samples": X.tolist()}).encode())
    headers = JSON | {"Content-Encoding": encoding}
    packed = await service.accepted("POST", "/observe?stream=packed", content=body, headers=headers)
    assert packed | {"stream": "plain"} == plain


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_every_route_with_a_body_reads_them(service, encoding):
    encode, headers = ENCODERS[encoding], JSON | {"Content-Encoding": encoding}
    await service.observe(blobs(100))
    given = {
        ("POST", "/feedback?stream=s"): {"labels": [{"seq": 80, "anomaly": True}]},
        ("POST", "/density?stream=s"): {"points": [[1.0, 2.0]]},
        ("PUT", "/streams/t"): {"n_features": 3},
        ("POST", "/ingest"): [{"stream": "t", "sample": [1, 2, 3]}],
    }
    for (method, path), body in given.items():
        await service.accepted(method, path, content=encode(json.dumps(body).encode()), headers=headers)
    export = await service.export()
    bytes_ = {"Content-Type": "application/octet-stream", "Content-Encoding": encoding}
    await service.accepted("PUT", "/streams/copy/import", content=encode(export), headers=bytes_)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 5_000_000])
def test_any_size_comes_back(encoding, size):
    for body in (bytes(size), bytes(i * i % 251 for i in range(min(size, 100_000)))):
        pieces = list(decoded_pieces(ENCODERS[encoding](body), encoding))
        assert b"".join(pieces) == body
        assert max(map(len, pieces)) <= PIECE_BYTES


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_parts_that_follow_each_other_are_joined(encoding):
    encode = ENCODERS[encoding]
    assert decode(encode(b"a") + encode(b"") + encode(b"b" * 300_000), encoding) == b"a" + b"b" * 300_000
    with pytest.raises(Undecodable, match="more than 100"):
        decode(encode(b"") * (MOST_PARTS + 1), encoding)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_what_cannot_be_decoded_is_refused(service, encoding):
    whole = ENCODERS[encoding](b'{"samples": [[1, 2]]}')
    headers = JSON | {"Content-Encoding": encoding}
    for body in (b"", whole[:-1], whole[:5], whole + b"rest", b'{"samples": [[1, 2]]}', zlib.compress(b"{}")):
        problem = await service.refused("POST", "/observe?stream=s", 422, "invalid_body", content=body, headers=headers)
        assert problem["field"] == "body"
        assert encoding in problem["limit"]
    await service.refused("GET", "/streams/s", 404, "unknown_stream")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
async def test_what_decodes_to_too_much_is_refused_without_decoding_it_all(encoding, monkeypatch):
    bomb = ENCODERS[encoding](bytes(50_000_000))
    assert len(bomb) < 60_000
    decoded = []

    def counting(body, name):
        for piece in decoded_pieces(body, name):
            decoded.append(len(piece))
            yield piece

    monkeypatch.setattr("app.api.bodies.reading.decoded_pieces", counting)
    async with Service(max_body_bytes=100_000) as service:
        headers = JSON | {"Content-Encoding": encoding}
        problem = await service.refused(
            "POST", "/observe?stream=s", 413, "body_too_large", content=bomb, headers=headers
        )
        assert "ITAN_MAX_BODY_BYTES" in problem["limit"]
    assert 0 < sum(decoded) <= 100_000 + PIECE_BYTES


def test_a_frame_cannot_ask_for_gigabytes_of_window():
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    compressor = zstd.ZstdCompressor(options=options)
    body = compressor.compress(b"x" * 1000) + compressor.flush()
    with pytest.raises(Undecodable, match="memory"):
        decode(body, "zstd")
