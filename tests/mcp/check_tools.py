"""Calls every tool of a testwright server with the clients of the official SDK and of fastmcp, on stdio and over HTTP.

Each result must match the tool's output schema and the schema of the protocol. `protocol-2025-11-25.json` is the published
schema of that version of the Model Context Protocol (Apache-2.0), without white space.

Usage: check_tools.py SETTINGS, as JSON with `command` (arguments to serve on stdio), `url`, `repository` and `issue`.
"""
import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import fastmcp
import mcp
from fastmcp.client.transports import StdioTransport
from jsonschema import Draft202012Validator
from mcp.client.stdio import StdioServerParameters

PROTOCOL = json.loads(Path(__file__).with_name('protocol-2025-11-25.json').read_text())
TEST = 'tests/test_given.py'
GOOD = 'from slugs import slugify\n\n\ndef test_end():\n    assert slugify("one two", max_length=4) == "one"\n'
MORE = 'def test_more():\n    assert slugify("a") == "a"\n'
CASES = [{'path': TEST, 'content': GOOD}, {'id': 'none', 'path': TEST, 'content': ''}]
SLUG = 'src/slugs/slug.py'
FIX = {'path': SLUG, 'old': 'return slug[:max_length]', 'new': 'return slug[:max_length].rstrip("-")'}


def patch(lines):
    return f'--- /dev/null\n+++ b/{TEST}\n@@ -0,0 +1,{len(lines)} @@\n' + ''.join(f'+{line}\n' for line in lines)


def service_calls(settings):
    place = {'repository': settings['repository']}
    test = patch(GOOD.splitlines())
    fix = f'--- a/{SLUG}\n+++ b/{SLUG}\n@@ -33,1 +33,1 @@\n-    {FIX["old"]}\n+    {FIX["new"]}\n'
    return [
        ('write_failing_test', {'issue': settings['issue'], **place}),
        ('check_test', {'path': TEST, 'content': GOOD, **place}),
        ('check_patch', {'tests': [{'name': 't', 'patch': test}], 'patches': [{'name': 'p', 'patch': fix}], **place}),
        ('verify', {'cases': CASES, **place}),
        ('cov', {'cases': CASES, 'contexts': True, **place}),
        ('open_session', place),
    ]


# Calls every tool of a session once, in an order in which each finds what it needs.
RAW_CALLS = [
    ('search', {'glob': '*.py'}),
    ('find_file', {'name': 'slug.py'}),
    ('open_file', {'path': SLUG}),
    ('outline', {'path': SLUG}),
    ('read_function', {'name': 'slugify'}),
    ('create_file', {'path': TEST, 'content': GOOD}),
    ('insert_function', {'path': TEST, 'code': MORE}),
    ('rewrite_function', {'path': TEST, 'name': 'test_more', 'code': MORE.replace('"a"', '"b"')}),
    ('edit_lines', {'path': TEST, 'first': 1, 'last': 0, 'text': ''}),
    ('edit', {'path': SLUG, 'old': 'One title', 'new': 'A title'}),
    ('revert', {'path': SLUG}),
    ('show_patch', {}),
    ('run_pytest', {}),
    ('run_python', {'code': 'print(1)'}),
    ('shell', {'command': 'yes | head -c 100000; exit 3'}),
    ('try_fix', {'edits': [FIX]}),
    ('submit', {'reason': 'it ends in a separator'}),
]
# Further calls with other forms of results, for one of the clients.
OTHER_CALLS = [
    ('search', {'pattern': 'def slugify'}),
    ('search', {'pattern': 'nothing has this'}),
    ('search', {'glob': '*.nothing'}),
    ('find_file', {'name': 'slgu.py'}),
    ('find_file', {'name': '*.nothing'}),
    ('create_file', {'path': 'tests/empty.txt', 'content': ''}),
    ('open_file', {'path': 'tests/empty.txt'}),
    ('read_function', {'path': SLUG}),
    ('edit', {'path': 'tests/empty.txt'}),
    ('revert', {'path': SLUG}),
    ('rewrite_function', {'path': TEST, 'name': 'test_more', 'code': ''}),
    ('run_pytest', {'tests': ['tests/test_slug.py', f'{TEST}::test_none']}),
    ('try_fix', {'edits': [{**FIX, 'variant': 1}, {**FIX, 'new': 'return slug', 'variant': 2}]}),
    ('revert', {}),
    ('show_patch', {}),
]
LAST_CALLS = [('close_session', {})]


class OfficialClient:
    """The client of the SDK, which also validates results itself."""

    def __init__(self, settings, transport):
        env = dict(os.environ)
        server = settings['url']
        if transport == 'stdio':
            server = StdioServerParameters(command=settings['command'][0], args=settings['command'][1:], env=env)
        self.client = mcp.Client(server)

    async def list_tools(self):
        return (await self.client.list_tools(cache_mode='bypass')).model_dump(by_alias=True, exclude_none=True, mode='json')

    async def call(self, name, arguments):
        result = await self.client.call_tool(name, arguments)
        return result.model_dump(by_alias=True, exclude_none=True, mode='json')


class FastmcpClient:
    def __init__(self, settings, transport):
        server = settings['url']
        if transport == 'stdio':
            server = StdioTransport(settings['command'][0], settings['command'][1:], env=dict(os.environ))
        self.client = fastmcp.Client(server)

    async def list_tools(self):
        listed = await self.client.list_tools_mcp()
        return listed.model_dump(by_alias=True, exclude_none=True, mode='json')

    async def call(self, name, arguments):
        result = await self.client.call_tool(name, arguments, raise_on_error=False)
        content = [part.model_dump(by_alias=True, exclude_none=True, mode='json') for part in result.content]
        answer = {'content': content, 'isError': result.is_error}
        if result.structured_content is not None:
            answer['structuredContent'] = result.structured_content
        return answer


def check_protocol(name, value):
    Draft202012Validator({**PROTOCOL, '$ref': f'#/$defs/{name}'}).validate(value)


def check_listing(listing):
    check_protocol('ListToolsResult', listing)
    for tool in listing['tools']:
        name = tool['name']
        Draft202012Validator.check_schema(tool['inputSchema'])
        Draft202012Validator.check_schema(tool['outputSchema'])
        assert tool['outputSchema']['type'] == 'object', name
        assert tool['outputSchema']['properties'], name
        assert tool['title'] and tool['title'] != name, name
        hints = {'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'}
        assert hints <= tool['annotations'].keys(), name
        assert not (tool['annotations']['readOnlyHint'] and tool['annotations']['destructiveHint']), name
    return {tool['name']: tool for tool in listing['tools']}


async def check_client(kind, transport, settings):
    client = kind(settings, transport)
    called = set()

    async def call(tools, name, arguments, is_error=False):
        where = f'{kind.__name__} on {transport}: {name} {arguments}'
        called.add(name)
        try:
            answer = await client.call(name, arguments)
            check_protocol('CallToolResult', answer)
            assert answer.get('isError', False) == is_error, answer
            assert ''.join(part['text'] for part in answer['content']), 'the text is missing'
            if not is_error:
                Draft202012Validator(tools[name]['outputSchema']).validate(answer['structuredContent'])
        except Exception as error:
            raise AssertionError(f'{where}: {type(error).__name__}: {error}') from error

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(client.client)
        tools = check_listing(await client.list_tools())
        for name, arguments in service_calls(settings):
            await call(tools, name, arguments)
        tools = check_listing(await client.list_tools())
        for name, arguments in RAW_CALLS + (OTHER_CALLS if kind is OfficialClient else []):
            await call(tools, name, arguments)
        for name in tools:
            await call(tools, name, {'no_such_field': 1}, is_error=True)
        for name, arguments in LAST_CALLS:
            await call(tools, name, arguments)
        assert called == set(tools), set(tools) ^ called
    print(f'{kind.__name__} on {transport}: {len(tools)} tools')


async def main():
    settings = json.loads(sys.argv[1])
    clients = [(kind, transport) for kind in (OfficialClient, FastmcpClient) for transport in ('stdio', 'http')]
    await asyncio.gather(*(check_client(kind, transport, settings) for kind, transport in clients))


asyncio.run(main())
