"""A minimal agent: the model writes a test file, and sees the gate's findings until the gate accepts it."""

import json
import sys
import urllib.request

task = json.load(sys.stdin)
model, mcp = task["model"], task["mcp"]


def post(url, token, body):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def tool(name, **arguments):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    return post(mcp["url"], mcp["token"], call)["result"]


files = tool("shell", command="find . -name '*.py' | sort | head -100")["content"][0]["text"]
prompt = f"""Write one pytest file with a test that fails because of this issue. Answer with one block of Python code.

{task["issue"]["title"]}\n\n{task["issue"]["body"]}\n\nThe files of the repository:\n{files}"""
messages = [{"role": "user", "content": prompt}]
for _ in range(task["limits"]["steps"]):
    body = {"model": model["name"], "messages": messages}
    reply = post(model["base_url"] + "/chat/completions", model["api_key"], body)["choices"][0]["message"]["content"]
    tool("revert")
    code = reply.split("```python\n")[-1].split("```")[0]
    answer = tool("create_file", path="tests/test_issue.py", content=code)
    if not answer["isError"]:
        answer = tool("submit")
    if answer.get("structuredContent", {}).get("accepted"):
        break
    findings = answer["content"][0]["text"]
    messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": findings}]
