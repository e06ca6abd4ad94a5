"""Talks to prompt agents on a real model and checks what does not depend on its wits: that each question ends, that
tokens are counted, that a long conversation goes on, and that its summary is stored. See bench/realmodel/run."""

import json
import sys
import time
import urllib.error
import urllib.request

url, token = sys.argv[1:3]
failed = []


def call(method, path, body=None):
    req = urllib.request.Request(url + "/api/v1" + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                 headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    with urllib.request.urlopen(req, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def check(ok, text):
    print(("ok    " if ok else "FAIL  ") + text, flush=True)
    if not ok:
        failed.append(text)


def agent(name, **config):
    call("POST", "/agents", {"name": name, "description": "Answers.", "kind": "prompt", "config": {"max_tokens": 60, **config}})
    return call("POST", "/conversations", {"members": [name]})["id"]


def ask(talk, text):
    """Returns the state and the text of the answer, and its seconds. At most 10 minutes."""
    said = call("POST", f"/conversations/{talk}/messages", {"client_id": str(time.time_ns()), "text": text})
    began = time.monotonic()
    while time.monotonic() - began < 600:
        for m in call("GET", f"/conversations/{talk}/messages?after={said['seq']}")["messages"]:
            if m["sender"]["kind"] == "agent" and m.get("task"):
                p = m["parts"][0]
                if m["task"]["state"] == "failed":
                    print("      failed: " + m["task"].get("reason", ""), flush=True)
                return m["task"]["state"], p.get("text") or json.dumps(p.get("data")), time.monotonic() - began
        time.sleep(0.1)
    return "no answer", "", time.monotonic() - began


plain = agent("plain", instructions="Answer briefly.")
state, text, took = ask(plain, "Hello, who are you?")
check(state == "completed" and text != "", f"a question: {state} in {took:.1f} s, {len(text)} characters")

sums = agent("sums", instructions="Use the tool calc for every sum.", tools=["calc", "find", "ask"])
call("PUT", "/grants/01JDNV5T7Q4Y8W2ZK6M3R9XCAB", {"agent": "sums", "tool": "ask", "scope": "public", "decision": "allow"})
state, text, took = ask(sums, "What is 17 times 23?")
used = call("GET", "/grants")["grants"][0]["used"]
check(state in ("completed", "failed", "input_required"), f"a question with tools and a grant: {state} in {took:.1f} s")
print(f"      the model called {used} tools; the answer has 391: {'391' in text}")

form = {"type": "object", "properties": {"city": {"type": "string"}, "ships": {"type": "integer"}},
        "required": ["city", "ships"], "additionalProperties": False}
facts = agent("facts", instructions="Answer with the city and the number of ships in it.", output=form)
state, text, took = ask(facts, "Seven ships lie in Hamburg.")
fits = False
if state == "completed":
    try:
        fits = set(json.loads(text)) == {"city", "ships"}
    except ValueError:
        pass
check(state == "completed" and fits or state == "failed", f"structured output: {state} in {took:.1f} s: {text[:80]!r}")

long, states = agent("long", instructions="Answer in one sentence."), []
for n in range(1, 8):
    state, text, took = ask(long, f"Chapter {n}. " + f"Ship {n} sails to the harbour of town {n} with apples. " * 20)
    states.append(state)
print(f"      a conversation longer than the context: {' '.join(states)}")
check(states.count("completed") >= 5 and "no answer" not in states, "it goes on beyond the model's context")
events = [m for m in call("GET", f"/conversations/{long}/messages?after=0&limit=100")["messages"]
          if m["kind"] == "event" and m["parts"][0].get("text", "").startswith("Summary of the earlier messages")]
check(len(events) > 0, f"{len(events)} summaries, which the transcript shows")

rows = call("GET", "/usage?of=agents&by=agent")["rows"]
tokens = {r["key"]: r["input_tokens"] + r["output_tokens"] for r in rows}
check(all(tokens.get(name, 0) > 0 for name in ("plain", "sums", "facts", "long")), f"tokens are counted: {tokens}")
print(f"      {sum(r['estimated_calls'] for r in rows)} of {sum(r['calls'] for r in rows)} calls are estimated")
sys.exit(len(failed) > 0)
