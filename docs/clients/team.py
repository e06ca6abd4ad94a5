"""An example for docs/teams.md: an A2A agent that adds numbers and speaks for itself in teams, with the packages
a2a-sdk and uvicorn. Usage: python team.py ADDRESS, such as 127.0.0.1:9000."""
import re
import sys

import uvicorn
from a2a.helpers import new_data_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill, Message, Role
from starlette.applications import Starlette

class Adder(AgentExecutor):
    async def execute(self, context, event_queue):
        parts = context.message.parts
        is_task = any(p.HasField("data") and p.data.struct_value["team"]["kind"] == "task" for p in parts)
        numbers = [int(n) for n in re.findall(r"\d+", " ".join(p.text for p in parts))]
        move = {"kind": "result" if is_task else "say", "text": f"The sum is {sum(numbers)}."}
        if not numbers:
            move["text"] = "I add numbers, and here are none."
        if not numbers and is_task:
            move["kind"] = "decline"  # so another agent gets the task
        await event_queue.enqueue_event(Message(message_id=context.message.message_id + "-answer", role=Role.ROLE_AGENT,
                                                context_id=context.context_id, parts=[new_data_part({"move": move})]))

    async def cancel(self, context, event_queue):
        pass

host, port = sys.argv[1].split(":")
card = AgentCard(
    name="Adder", description="Adds numbers.", version="1", default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", url=f"http://{sys.argv[1]}/rpc", protocol_version="1.0")],
    capabilities=AgentCapabilities(extensions=[AgentExtension(uri="https://agentsite.dev/ext/team/v1")]),
    skills=[AgentSkill(id="add", name="Add numbers", description="Adds numbers.", tags=["sum"])])
handler = DefaultRequestHandler(agent_executor=Adder(), task_store=InMemoryTaskStore(), agent_card=card)
uvicorn.run(Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]),
            host=host, port=int(port), log_level="warning")
