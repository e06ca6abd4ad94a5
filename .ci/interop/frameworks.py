"""Runs the programs of docs/frameworks.md as they stand, and asks the agents that they become.

Usage: frameworks.py DOCS-FOLDER WORK-FOLDER, with the settings of portal.py. The command agentsite and the Python of the
frameworks must be in PATH.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from portal import api, ask, cancels, portal, stream

docs, work = Path(sys.argv[1]), Path(sys.argv[2])
page = (docs / "frameworks.md").read_text()


def wait_for(agent: str, program: subprocess.Popen) -> None:
    """Waits until an agent is registered and alive."""
    for _ in range(600):
        answer = api.get("/agents/" + agent)
        if answer.status_code == 200 and answer.json()["liveness"]["state"] == "alive":
            return
        assert program.poll() in (None, 0), "the commands ended"
        time.sleep(0.1)
    raise AssertionError(f"{agent} is not alive: {answer.text}")


def try_agent(agent: str, streams: bool) -> None:
    assert agent in json.dumps(api.get("/search", params={"q": "adds whole numbers"}).json()), "not found"
    assert ask(agent, "add 2 3").strip() == "The sum is 5."
    pieces = stream(agent, "say it word by word")
    assert "say it word by word" in "".join(pieces), pieces
    assert not streams or len(pieces) > 1, pieces
    cancels(agent)
    # fasta2a works on one task at a time, and reads that it is canceled only when that has ended.
    if agent != "sums-a2a":
        assert ask(agent, "add 20 30").strip() == "The sum is 50."


def run(title: str, section: str, model: str) -> None:
    file = re.search(r"Save as `(\w+\.py)`", section)[1]
    (work / file).write_text(re.search(r"```python\n(.*?)```", section, re.S)[1])
    commands = re.search(r"```sh\n(.*?)```", section, re.S)[1]
    agent = re.search(r'--name (\S+)|"name":"([^"]+)"', commands)
    agent = agent[1] or agent[2]
    # The frameworks are installed in the versions of the lock file.
    script = re.sub(r"^pip install .*\n", "", commands, flags=re.M) + "wait\n"
    environment = {**os.environ, "OPENAI_BASE_URL": model, "OPENAI_API_KEY": "none", "MODEL": "script",
                   "AGENTSITE_PORTAL": portal}
    program = subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=work, env=environment,
                               start_new_session=True)
    try:
        wait_for(agent, program)
        try_agent(agent, streams="comes whole" not in section)
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        program.wait()
    print("ok", title, flush=True)


script = subprocess.Popen([sys.executable, Path(__file__).with_name("model.py")], stdout=subprocess.PIPE, text=True)
try:
    address = script.stdout.readline().strip()
    sections = re.findall(r"^## (Framework: [^\n]*)\n(.*?)(?=^## )", page, re.M | re.S)
    assert len(sections) == 5, len(sections)
    for title, section in sections:
        run(title, section, address)
finally:
    script.kill()
