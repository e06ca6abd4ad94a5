"""Agents by the public packages of Python, unmodified, each on a port of its own.

Usage: agents.py. It prints the addresses as one line of JSON, and serves until it is killed.
"""
import asyncio
import json
import socket

import uvicorn
from a2a.helpers import new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.helpers import new_task_from_user_message
from mcp.server import MCPServer
from starlette.applications import Starlette


class Words(AgentExecutor):
    """Repeats a message word by word; "wait" goes on until it is canceled, "fail" fails, "ask" asks back."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        say = lambda words: updater.new_agent_message([new_text_part(words)])
        words = context.get_user_input().split()
        await updater.start_work()
        if words[:1] == ["wait"]:
            await asyncio.Event().wait()
        if words[:1] == ["fail"]:
            await updater.failed(say("it fails as asked"))
            return
        if words[:1] == ["ask"]:
            await updater.requires_input(say("which colour?"))
            return
        for i, word in enumerate(words):
            await updater.add_artifact([new_text_part(word + " ")], artifact_id="answer", name="answer",
                                       append=i > 0, last_chunk=i == len(words) - 1)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def a2a_app(url: str) -> Starlette:
    card = AgentCard(
        name="Words of Python", description="Repeats words, by the package a2a-sdk.", version="1.0.0",
        supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", url=url + "/rpc", protocol_version="1.0")],
        default_input_modes=["text/plain"], default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True),
        skills=[AgentSkill(id="repeat", name="Repeat words", description="Repeats each word.", tags=["words"])])
    handler = DefaultRequestHandler(agent_executor=Words(), task_store=InMemoryTaskStore(), agent_card=card)
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])


def tools() -> MCPServer:
    server = MCPServer("tools-of-python")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    @server.tool()
    async def wait() -> str:
        """Wait until the call is canceled."""
        await asyncio.Event().wait()
        return "never"

    return server


async def main() -> None:
    apps = {"a2a": a2a_app, "mcp": lambda _: tools().streamable_http_app(), "sse": lambda _: tools().sse_app()}
    urls, servers = {}, []
    for name, make in apps.items():
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        urls[name] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(make(urls[name]), log_level="warning"))
        servers.append(server.serve(sockets=[listener]))
    print(json.dumps(urls), flush=True)
    await asyncio.gather(*servers)


asyncio.run(main())
