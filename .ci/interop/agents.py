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
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


waited = {"a2a": 0, "mcp": 0, "sse": 0}    # the calls that waited at each,
canceled = {"a2a": 0, "mcp": 0, "sse": 0}  # and those that were canceled


class Words(AgentExecutor):
    """Repeats a message word by word; "wait" says it and goes on until it is canceled, "fail" fails, "ask" asks back,
    "count" says how many tasks waited, and how many were canceled."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        say = lambda words: updater.new_agent_message([new_text_part(words)])
        words = context.get_user_input().split()
        await updater.start_work()
        if words[:1] == ["wait"]:
            await updater.add_artifact([new_text_part("waiting ")], artifact_id="answer", name="answer")
            waited["a2a"] += 1
            await asyncio.Event().wait()
        if words[:1] == ["count"]:
            words = [str(waited["a2a"]), str(canceled["a2a"])]
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
        canceled["a2a"] += 1
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


def tools(name: str) -> MCPServer:
    server = MCPServer("tools-of-python")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        return a + b

    @server.tool()
    async def wait() -> str:
        """Wait until the call is canceled."""
        waited[name] += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            canceled[name] += 1
            raise
        return "never"

    @server.tool()
    def count() -> str:
        """Say how many calls waited, and how many were canceled."""
        return f"{waited[name]} {canceled[name]}"

    return server


async def drop_answer(request: Request) -> StreamingResponse:
    """Answers as a model server that says a word and then loses the connection."""
    async def stream():
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "drops",
                 "choices": [{"index": 0, "delta": {"content": "half "}, "finish_reason": None}]}
        yield "data: " + json.dumps(chunk) + "\n\n"
        await asyncio.sleep(0.2)  # so that the portal sends the word before it reads the end
        raise ConnectionAbortedError("the connection is dropped, as asked")

    return StreamingResponse(stream(), media_type="text/event-stream")


def model_app(_: str) -> Starlette:
    return Starlette(routes=[Route("/v1/chat/completions", drop_answer, methods=["POST"])])


async def main() -> None:
    apps = {"a2a": a2a_app, "mcp": lambda _: tools("mcp").streamable_http_app(),
            "sse": lambda _: tools("sse").sse_app(), "drops": model_app}
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
