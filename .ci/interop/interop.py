"""Asks a portal by the public packages of Python, and lets it ask agents made with them.

Usage: interop.py AGENTS, with the settings of portal.py. AGENTS are the addresses that agents.py printed.
"""
import asyncio
import json
import sys

import httpx
import httpx2
import openai
from a2a.client import ClientConfig, create_client
from a2a.helpers import get_artifact_text, get_stream_response_text, new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, Role, SendMessageRequest, TaskState
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from portal import api, ask, cancels, find, key, portal, register, state, stream, v1, wait_until

agents = json.loads(sys.argv[1])


def says(words: str) -> SendMessageRequest:
    return SendMessageRequest(message=new_text_message(words, role=Role.ROLE_USER))


def completes_and_streams() -> None:
    assert ask("calc", "2+2").startswith("**4**")
    grown = "".join(stream("calc", "6*7"))
    assert grown.startswith("**42**"), grown
    assert "calc" in [m.id for m in v1.models.list()]


def refuses_a_wrong_key() -> None:
    try:
        openai.OpenAI(base_url=portal + "/v1", api_key="ags_wrong").models.list()
    except openai.AuthenticationError:
        return
    raise AssertionError("a wrong key was accepted")


async def asks_by_a2a(binding: str) -> None:
    async with httpx.AsyncClient(headers=key, timeout=30) as http:
        for streaming in (True, False):
            config = ClientConfig(httpx_client=http, streaming=streaming, supported_protocol_bindings=[binding],
                                  use_client_preference=True)
            client = await create_client(f"{portal}/agents/calc", config)
            task, grown = None, ""
            async for event in client.send_message(says("6*7")):
                kind = event.WhichOneof("payload")
                if kind == "task":
                    task = event.task
                    grown = "".join(get_artifact_text(a) for a in task.artifacts)
                elif kind == "artifact_update":
                    grown += get_stream_response_text(event)
            assert grown.startswith("**42**"), grown
            kept = await client.get_task(GetTaskRequest(id=task.id))
            assert kept.status.state == TaskState.TASK_STATE_COMPLETED, kept
            assert "".join(get_artifact_text(a) for a in kept.artifacts) == grown
            try:
                await client.cancel_task(CancelTaskRequest(id=task.id))
            except Exception as refused:
                assert "cancel" in str(refused), refused
            else:
                raise AssertionError("a task that has ended was canceled")


async def asks_by_mcp() -> None:
    async with httpx2.AsyncClient(headers=key) as http:
        async with Client(streamable_http_client(portal + "/mcp", http_client=http)) as client:
            names = [t.name for t in (await client.list_tools()).tools]
            assert "ask_agent" in names and "search_agents" in names, names
            found = await client.call_tool("search_agents", {"query": "calculate"})
            assert "calc" in found.content[0].text, found
            answer = await client.call_tool("ask_agent", {"agent": "calc", "text": "6*7"})
            assert "**42**" in answer.content[0].text and not answer.is_error, answer


def count(agent: str) -> list[int]:
    """Returns how many tasks or calls of an agent of agents.py waited, and how many were canceled there."""
    return [int(n) for n in ask(agent, "count").split()]


def talks_to_an_agent_of_a2a_sdk() -> None:
    register(name="py-words", kind="a2a", endpoint=agents["a2a"])
    find("py-words", "repeats words")
    assert ask("py-words", "one two three").strip() == "one two three"
    assert "".join(stream("py-words", "one two three")).strip() == "one two three"
    assert "colour" in ask("py-words", "ask")
    try:
        ask("py-words", "fail")
    except openai.APIStatusError as failed:
        assert "it fails as asked" in str(failed), failed
    else:
        raise AssertionError("a failure was an answer")
    cancels("py-words", begun=lambda: count("py-words") == [1, 0])
    wait_until(lambda: count("py-words") == [1, 1])


async def cancels_by_a2a() -> None:
    """Cancels a task that runs, over each binding, from a stream and from a call that returned at once."""
    for binding in ("JSONRPC", "HTTP+JSON"):
        async with httpx.AsyncClient(headers=key, timeout=30) as http:
            config = ClientConfig(httpx_client=http, streaming=True, supported_protocol_bindings=[binding],
                                  use_client_preference=True)
            client = await create_client(f"{portal}/agents/py-words", config)
            waited, canceled = await asyncio.to_thread(count, "py-words")
            task, grown, states = "", "", []
            async for event in client.send_message(says("wait")):
                kind = event.WhichOneof("payload")
                if kind == "task":
                    task = event.task.id
                    grown = "".join(get_artifact_text(a) for a in event.task.artifacts)
                elif kind == "artifact_update":
                    grown += get_stream_response_text(event)
                elif kind == "status_update":
                    states.append(event.status_update.status.state)
                if grown.startswith("waiting") and not states.count("canceling"):
                    states.append("canceling")
                    answer = await client.cancel_task(CancelTaskRequest(id=task))
                    assert answer.status.state == TaskState.TASK_STATE_CANCELED, answer
            assert states[-1] == TaskState.TASK_STATE_CANCELED, states
            kept = await client.get_task(GetTaskRequest(id=task))
            assert kept.status.state == TaskState.TASK_STATE_CANCELED, kept
            await asyncio.to_thread(wait_until, lambda: count("py-words") == [waited + 1, canceled + 1])


def leaves_a_stream() -> None:
    """Closes a stream before its end: the task ends, here and at the agent."""
    waited, canceled = count("py-words")
    chunks = v1.chat.completions.create(model="py-words", stream=True, messages=[{"role": "user", "content": "wait"}])
    for chunk in chunks:
        if "waiting" in (chunk.choices[0].delta.content or ""):
            break
    task = api.get("/tasks", params={"limit": 1}).json()["tasks"][0]["id"]
    assert state(task) == "working", state(task)
    chunks.close()
    wait_until(lambda: state(task) != "working")
    assert state(task) == "canceled", state(task)
    wait_until(lambda: count("py-words") == [waited + 1, canceled + 1])


def reads_why_a_stream_was_cut() -> None:
    register(name="py-drops", kind="openai", description="Loses its connection.", endpoint=agents["drops"] + "/v1",
             config={"model": "drops"})
    grown = ""
    try:
        for chunk in v1.chat.completions.create(model="py-drops", stream=True,
                                                messages=[{"role": "user", "content": "x"}]):
            grown += chunk.choices[0].delta.content or ""
    except openai.APIError as cut:
        assert grown.strip() == "half", grown
        assert "interrupted" in str(cut) and "closed" in str(cut), cut
    else:
        raise AssertionError(f"the part {grown!r} was a whole answer")
    try:
        whole = ask("py-drops", "x")
    except openai.APIStatusError as cut:
        assert "interrupted" in str(cut) and "closed" in str(cut), cut
    else:
        raise AssertionError(f"the part {whole!r} was a whole answer")


def uses_a_server_of_mcp(name: str, path: str) -> None:
    agent = "py-" + name
    register(name=agent, kind="mcp", endpoint=agents[name] + path)
    find(agent, "add two whole numbers")
    assert ask(agent, "add a=2 b=3") == "5"
    assert "".join(stream(agent, "add a=20 b=30")) == "50"
    assert "whole numbers" in json.dumps(api.get("/agents/" + agent).json())
    cancels(agent, begun=lambda: count(agent) == [1, 0])
    wait_until(lambda: count(agent) == [1, 1])


cases = {
    "openai: complete, stream, list": completes_and_streams,
    "openai: a wrong key": refuses_a_wrong_key,
    "a2a-sdk as client, JSON-RPC": lambda: asyncio.run(asks_by_a2a("JSONRPC")),
    "a2a-sdk as client, HTTP+JSON": lambda: asyncio.run(asks_by_a2a("HTTP+JSON")),
    "mcp as client": lambda: asyncio.run(asks_by_mcp()),
    "a2a-sdk as agent: found, asked, streamed, asks back, fails, canceled": talks_to_an_agent_of_a2a_sdk,
    "a2a-sdk as client: cancels a task that runs, both bindings": lambda: asyncio.run(cancels_by_a2a()),
    "openai: leaves a stream, which cancels the task": leaves_a_stream,
    "openai: reads why a stream was cut": reads_why_a_stream_was_cut,
    "mcp as server, streamable HTTP: found, called, canceled": lambda: uses_a_server_of_mcp("mcp", "/mcp"),
    "mcp as server, HTTP+SSE: found, called, canceled": lambda: uses_a_server_of_mcp("sse", "/sse"),
}
for name, case in cases.items():
    case()
    print("ok", name)
