"""The agent in the driver: watches the job, takes savepoints, stops it, opens its gate, over HTTP.

docs/agent.md describes the API.
"""

from sparkpoint.runtime.agent.errors import AgentError
from sparkpoint.runtime.agent.server import Agent, start_agent
from sparkpoint.runtime.orders import CaptureSettings

__all__ = ["Agent", "AgentError", "CaptureSettings", "start_agent"]
