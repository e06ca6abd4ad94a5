"""A model server that answers by a script, for agents made with frameworks. Usage: model.py. It prints its address.

"add A B" calls the tool add and says its result; "wait" says a word and goes on until the reader leaves; other text is
repeated.
"""
import asyncio
import json
import re
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


def text_of(message: dict) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    return content


def call(name: str, arguments: dict) -> dict:
    return {"index": 0, "id": "call_" + name, "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)}}


def decide(body: dict) -> tuple[str, dict | None]:
    """Returns the text of the answer, or a tool call."""
    tools = {tool["function"]["name"] for tool in body.get("tools") or []}
    asked = [m for m in body["messages"] if m["role"] == "user"]
    results = [re.search(r"\d+", text_of(m)) for m in body["messages"] if m["role"] in ("tool", "tool-response")]
    results += [re.search(r"Observation:\D*(\d+)", text_of(m)) for m in asked]
    results = [r.group(r.lastindex or 0) for r in results if r]
    sum_ = re.search(r"add (\d+) (\d+)", " ".join(text_of(m) for m in asked))
    if results:
        answer = "The sum is " + results[-1] + "."
    elif sum_ and "add" in tools:
        return "", call("add", {"a": int(sum_[1]), "b": int(sum_[2])})
    else:
        answer = "You said: " + text_of(asked[-1])
    return ("", call("final_answer", {"answer": answer})) if "final_answer" in tools else (answer, None)


async def complete(request: Request) -> Response:
    body = await request.json()
    answer, tool = decide(body)
    head = {"id": "script", "created": 1, "model": body["model"]}
    end = "tool_calls" if tool else "stop"
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    waits = any(m["role"] == "user" and "wait" in text_of(m) for m in body["messages"])
    if not body.get("stream"):
        if waits:
            await asyncio.Event().wait()
        message = {"role": "assistant", "content": answer or None, "tool_calls": [tool] if tool else None}
        return JSONResponse(head | {"object": "chat.completion", "usage": usage, "choices": [
            {"index": 0, "message": message, "finish_reason": end}]})

    def chunk(delta: dict, reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return "data: " + json.dumps(head | {"object": "chat.completion.chunk", "choices": [choice]}) + "\n\n"

    async def stream():
        yield chunk({"role": "assistant", "content": ""})
        if tool:
            yield chunk({"tool_calls": [tool]})
        for word in re.findall(r"\S+\s*", answer):
            yield chunk({"content": word})
            if waits:
                await asyncio.Event().wait()
            await asyncio.sleep(0.1)  # as a model does; the portal sends at once what comes at once
        yield chunk({}, end)
        yield "data: " + json.dumps(head | {"object": "chat.completion.chunk", "choices": [], "usage": usage}) + "\n\n"
        yield "data: [DONE]\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", flush=True)
app = Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
