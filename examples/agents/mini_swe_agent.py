"""mini-swe-agent (https://mini-swe-agent.com) as an approach: its commands run in the sandbox of the run.

uv run --with mini-swe-agent testwright run … --approach 'command(mini-swe-agent):python examples/agents/mini_swe_agent.py'
"""

import json
import os
import re
import sys
import urllib.request

os.environ |= {"MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

import yaml
from minisweagent import package_dir
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

TASK = """Do not fix the issue. Add a test to the repository's test files that fails now because of the issue, and
passes once it is fixed. Change only test files. Run the test and see it fail before you finish. Where other instructions
speak of a fix, they mean this test. There is no git and no network.\n\n"""


class Sandbox(LocalEnvironment):
    """Runs each command through the tool `shell`."""

    def __init__(self, url, token):
        super().__init__()
        self.url, self.token = url, token

    def tool(self, name, **arguments):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url, json.dumps(call).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["result"]["content"][0]["text"]

    def execute(self, action, cwd="", *, timeout=None):
        text = self.tool("shell", command=action["command"])
        failed = re.search(r"^\((?:exit status|ended by signal) (\d+)\)$", text.splitlines()[-1] if text else "")
        output = {"output": text, "returncode": int(failed[1]) if failed else 0, "exception_info": ""}
        self._check_finished(output)
        return output


task = json.load(sys.stdin)
model, issue = task["model"], task["issue"]
config = yaml.safe_load((package_dir / "config" / "mini.yaml").read_text())
settings = {"api_base": model["base_url"], "api_key": model["api_key"], "drop_params": True}
own = {"model_name": f"openai/{model['name']}", "model_kwargs": settings, "cost_tracking": "ignore_errors"}
templates = {name: config["agent"][name] for name in ("system_template", "instance_template")}
sandbox = Sandbox(**task["mcp"])
agent = DefaultAgent(LitellmModel(**config["model"] | own), sandbox, **templates, cost_limit=0)
agent.run(f"{TASK}{issue['title']}\n\n{issue['body']}")
sandbox.tool("submit")
