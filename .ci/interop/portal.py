"""Asks a portal by its API, for the programs beside this one.

AGENTSITE_PORTAL is its address, AGENTSITE_TOKEN a token that may chat and register agents.
"""
import os
import time

import httpx
import openai

portal, token = os.environ["AGENTSITE_PORTAL"], os.environ["AGENTSITE_TOKEN"]
key = {"Authorization": f"Bearer {token}"}
api = httpx.Client(base_url=portal + "/api/v1", headers=key, timeout=60)
v1 = openai.OpenAI(base_url=portal + "/v1", api_key=token)


def register(**agent) -> None:
    answer = api.post("/agents", json=agent)
    assert answer.status_code == 201, answer.text


def ask(agent: str, words: str) -> str:
    answer = v1.chat.completions.create(model=agent, messages=[{"role": "user", "content": words}])
    return answer.choices[0].message.content


def stream(agent: str, words: str) -> list[str]:
    """Returns the pieces of an answer."""
    chunks = v1.chat.completions.create(model=agent, stream=True, messages=[{"role": "user", "content": words}])
    return [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]


def find(agent: str, query: str) -> None:
    """Checks that a search finds an agent."""
    found = [r["agent"]["handle"] for r in api.get("/search", params={"q": query}).json()["results"]]
    assert agent in found, found


def wait_until(holds) -> None:
    """Waits until holds() is true; the program around this one has a timeout."""
    while not holds():
        time.sleep(0.05)


def state(task: str) -> str:
    return api.get(f"/tasks/{task}").json()["state"]


def cancels(agent: str, begun=lambda: True) -> None:
    """Stops a question that never ends, when the task runs and begun() is true."""
    room = api.post("/conversations", json={"members": [agent]}).json()["id"]
    said = api.post(f"/conversations/{room}/messages", json={"text": "wait", "client_id": "wait-" + agent}).json()
    task = said["tasks"][0]["id"]
    wait_until(lambda: state(task) != "submitted" and begun())
    answer = api.post(f"/tasks/{task}/cancel")
    assert answer.status_code < 300, answer.text
    wait_until(lambda: state(task) != "working")
    assert state(task) == "canceled", state(task)
