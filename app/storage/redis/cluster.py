"""The nodes of a Redis Cluster."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from redis.asyncio import RedisCluster
from redis.asyncio.cluster import ClusterNode, PipelineCommand
from redis.exceptions import ConnectionError as DisconnectedError
from redis.exceptions import MovedError, RedisClusterException
from redis.exceptions import TimeoutError as SilentError

from app.storage.redis.servers import RETRIES, CountedBackoff, Info, Words, accept, judge, merge

# Errors of a node that cannot be reached, or that no longer has the stream.
UNREACHED = (DisconnectedError, SilentError, OSError)
ELSEWHERE = (*UNREACHED, MovedError)


class Cluster:
    """The nodes of a Cluster; each stream lives on one of them.

    redis-py knows which one, but its own pipelines fail on all nodes if one fails.
    """

    leases_together = 1

    def __init__(self, hosts: list[tuple[str, int]], options: dict[str, Any]) -> None:
        self.backoff = CountedBackoff()
        self.timeout_seconds = float(options["socket_timeout"])
        self._client = RedisCluster(startup_nodes=[ClusterNode(*host) for host in hosts], protocol=2, **options)
        self._nodes = self._client.nodes_manager

    async def open(self) -> None:
        """Discover the nodes, and check that one can serve."""
        await self._nodes.initialize()
        await self.ask("PING")

    async def close(self) -> None:
        """Close all connections."""
        await self._nodes.aclose()
        await self._nodes.aclose("startup_nodes")

    async def exchange(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Send commands in one pipeline per node, each with `waits` behind; send again what found no node."""
        remaining = dict(enumerate(commands))
        answers = await self._exchange_once(remaining, waits)
        for failures in range(1, RETRIES + 1):
            remaining = {place: commands[place] for place, answer in answers.items() if isinstance(answer, ELSEWHERE)}
            if remaining:
                await asyncio.sleep(self.backoff.compute(failures))
                answers |= await self._exchange_once(remaining, waits)
        return [answers[place] for place in range(len(commands))]

    async def exchange_short(self, commands: Sequence[Words], waits: Sequence[Words]) -> list[Any]:
        """Do the same: only redis-py knows which node has a stream."""
        return await self.exchange(commands, waits)

    async def _exchange_once(self, commands: Mapping[int, Words], waits: Sequence[Words]) -> dict[int, Any]:
        groups: dict[ClusterNode, dict[int, Words]] = {}
        for place, words in commands.items():
            node = self._nodes.get_node_from_slot(self._client.keyslot(key_of(words)))
            groups.setdefault(node, {})[place] = words
        parts = await asyncio.gather(*(self._send(node, [*group.values()], waits) for node, group in groups.items()))
        return dict(zip(chain(*groups.values()), chain(*parts), strict=True))

    async def _send(self, node: ClusterNode, commands: Sequence[Words], waits: Sequence[Words] = ()) -> list[Any]:
        """Send commands to a node; if it cannot be reached, that error is the answer to each."""
        pipeline = [PipelineCommand(place, *words) for place, words in enumerate((*commands, *waits))]
        try:
            await node.execute_pipeline(pipeline)
            answers = [command.result for command in pipeline]
        except UNREACHED as error:
            answers = [error] * len(pipeline)
        await self._follow(node, answers)
        return judge(answers[: len(commands)], answers[len(commands) :])

    async def _follow(self, node: ClusterNode, answers: Sequence[Any]) -> None:
        """Discover the nodes again if the answers show that this node, or a stream on it, is gone."""
        if any(isinstance(answer, ELSEWHERE) for answer in answers):
            with suppress(RedisClusterException):  # no node answers: keep the known ones
                await self._nodes.initialize(last_failed_node_name=node.name)
        for answer in answers:
            if isinstance(answer, MovedError):
                await self._nodes.move_slot(answer)

    async def info(self, *sections: str) -> list[Info]:
        """Get INFO from every primary."""
        questions = [("INFO", section) for section in sections]
        return [merge(accept(await self._send(node, questions))) for node in self._client.get_primaries()]

    async def ask(self, *words: Any) -> Any:
        """Send one command to the first primary that can be reached."""
        answers: list[Any] = []
        for node in self._client.get_primaries():
            answers = await self._send(node, [words])
            if not isinstance(answers[0], UNREACHED):
                break
        return accept(answers)[0]


def key_of(words: Words) -> str:
    """Give the key that determines the node of a command."""
    return str(words[3] if words[0] in ("EVAL", "EVALSHA") else words[1])
