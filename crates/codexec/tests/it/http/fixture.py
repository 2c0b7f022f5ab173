"""The server that MCP's conformance suite expects behind a URL, written with the official SDK.

`fixture.py stdio` speaks over its pipes; `fixture.py http` prints its URL and serves there.
"""

import json
import re
import socket
import sys
import warnings

import anyio
import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

warnings.filterwarnings("ignore")

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PAUSE_S = 0.05
MISSING_CAPABILITY = -32021

bus = InMemorySubscriptionBus()
extra_tools: list[str] = []
extra_prompts: list[str] = []


def obj(required=(), **properties):
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def text(words):
    return {"type": "text", "text": words}


def done(*content):
    return {"content": list(content)}


def embedded(uri, words, mime="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
STRING = {"type": "string"}


# Tools


async def log(ctx, words):
    session = ctx.session
    await session.send_log_message("info", words, related_request_id=ctx.request_id)


async def with_logging(ctx, _):
    await log(ctx, "Tool execution started")
    await anyio.sleep(PAUSE_S)
    await log(ctx, "Tool processing data")
    await anyio.sleep(PAUSE_S)
    await log(ctx, "Tool execution completed")
    return done(text("logged"))


async def with_progress(ctx, _):
    for step in (0, 50, 100):
        await ctx.session.report_progress(step, 100, f"step {step}")
        await anyio.sleep(PAUSE_S)
    return done(text("progressed"))


async def fails(ctx, _):
    return {"content": [text("This tool intentionally returns an error for testing")], "isError": True}


async def sampling(ctx, params):
    message = types.SamplingMessage(role="user", content=types.TextContent(text=params["prompt"]))
    result = await ctx.session.create_message(
        [message], max_tokens=100, related_request_id=ctx.request_id
    )
    return done(text(f"LLM response: {result.content.text}"))


async def roots(ctx, _):
    listed = await ctx.session.list_roots()
    return done(text(" ".join(str(root.uri) for root in listed.roots)))


async def elicit(ctx, message, schema):
    result = await ctx.session.elicit_form(message, schema, ctx.request_id)
    answer = f"action={result.action}, content={json.dumps(result.content)}"
    return done(text(f"Elicitation completed: {answer}"))


async def elicitation(ctx, params):
    schema = obj(["username", "email"], username=STRING, email=STRING)
    return await elicit(ctx, params["message"], schema)


async def elicitation_defaults(ctx, _):
    schema = obj(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await elicit(ctx, "Who are you?", schema)


async def elicitation_enums(ctx, _):
    words = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
    schema = obj(
        untitledSingle={"type": "string", "enum": words},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": words}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return await elicit(ctx, "Which one?", schema)


async def trigger_tool_change(ctx, _):
    if extra_tools:
        extra_tools.clear()
    else:
        extra_tools.append("test_extra_tool")
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return done(text("changed"))


async def trigger_prompt_change(ctx, _):
    if extra_prompts:
        extra_prompts.clear()
    else:
        extra_prompts.append("test_extra_prompt")
    await bus.publish(PromptsListChanged())
    await ctx.session.send_prompt_list_changed()
    return done(text("changed"))


async def watched_change(ctx, _):
    await ctx.session.send_resource_updated("test://watched-resource")
    return done(text("changed"))


# Questions as results


def form(message, **properties):
    schema = obj(list(properties), **properties)
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def completion(words):
    message = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


ROOTS = {"method": "roots/list", "params": {}}


def typed(result, kind):
    """The same result as the SDK's type, which adds what the protocol version requires."""
    asks = result.get("resultType") == "input_required"
    return (types.InputRequiredResult if asks else kind).model_validate(result)


def ask(requests, state=None):
    asked = {"resultType": "input_required", "inputRequests": requests}
    return asked | ({"requestState": state} if state else {})


def answers(params):
    given = params.get("inputResponses") or {}
    return {key: value for key, value in given.items() if isinstance(value, dict)}


def asker(requests, state=None, words="answered"):
    async def tool(ctx, params):
        given = answers(params["_request"])
        if set(requests) <= set(given) and params["_request"].get("requestState") == state:
            return done(text(f"{words} {json.dumps(given)}"))
        return ask(requests, state)

    return tool


async def multi_round(ctx, params):
    request = params["_request"]
    match request.get("requestState"):
        case "round-1" if "step1" in answers(request):
            return ask({"step2": form("Step 2: What is your favorite color?", color=STRING)}, "round-2")
        case "round-2" if "step2" in answers(request):
            return done(text("all rounds are over"))
        case _:
            return ask({"step1": form("Step 1: What is your name?", name=STRING)}, "round-1")


def has(ctx, capability):
    declared = ctx.session.client_capabilities
    return declared is not None and getattr(declared, capability) is not None


async def ask_for_declared(ctx, params):
    requests = {"capital": completion("What is the capital of France?")} if has(ctx, "sampling") else {}
    if has(ctx, "elicitation"):
        requests["name"] = form("What is your name?", name=STRING)
    return ask(requests, "declared")


async def missing_capability(ctx, _):
    if not has(ctx, "sampling"):
        data = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_CAPABILITY, "sampling is required", data)
    return done(text("sampling is declared"))


async def say(ctx, _):
    return done(text("This is a simple text response for testing."))


def just(*content):
    async def tool(ctx, _):
        return done(*content)

    return tool


NAME = {"user_name": form("What is your name?", name=STRING)}
CONFIRM = {"confirm": form("Please confirm", ok={"type": "boolean"})}
MANY = NAME | {"greeting": completion("Generate a greeting"), "client_roots": ROOTS}
JSON = '{"test":"data","value":123}'

TOOLS = {
    "test_simple_text": (say, obj()),
    "test_image_content": (just(IMAGE), obj()),
    "test_audio_content": (just(AUDIO), obj()),
    "test_embedded_resource": (
        just(embedded("test://embedded-resource", "This is an embedded resource content.")),
        obj(),
    ),
    "test_multiple_content_types": (
        just(
            text("Multiple content types test:"),
            IMAGE,
            embedded("test://mixed-content-resource", JSON, "application/json"),
        ),
        obj(),
    ),
    "test_tool_with_logging": (with_logging, obj()),
    "test_logging_tool": (with_logging, obj()),
    "test_tool_with_progress": (with_progress, obj()),
    "test_error_handling": (fails, obj()),
    "test_sampling": (sampling, obj(["prompt"], prompt=STRING)),
    "test_roots": (roots, obj()),
    "test_elicitation": (elicitation, obj(["message"], message=STRING)),
    "test_elicitation_sep1034_defaults": (elicitation_defaults, obj()),
    "test_elicitation_sep1330_enums": (elicitation_enums, obj()),
    "test_trigger_tool_change": (trigger_tool_change, obj()),
    "test_trigger_prompt_change": (trigger_prompt_change, obj()),
    "test_watched_change": (watched_change, obj()),
    "test_missing_capability": (missing_capability, obj()),
    "test_streaming_elicitation": (asker(NAME), obj()),
    "test_input_required_result_elicitation": (asker(NAME, words="Hello"), obj()),
    "test_input_required_result_sampling": (
        asker({"capital_question": completion("What is the capital of France?")}),
        obj(),
    ),
    "test_input_required_result_list_roots": (asker({"client_roots": ROOTS}), obj()),
    "test_input_required_result_request_state": (asker(CONFIRM, "state", "state-ok"), obj()),
    "test_input_required_result_multiple_inputs": (asker(MANY, "many"), obj()),
    "test_input_required_result_multi_round": (multi_round, obj()),
    # It believes every state: codexec must not pass on a changed one.
    "test_input_required_result_tampered_state": (asker(CONFIRM, "state"), obj()),
    "test_input_required_result_capabilities": (ask_for_declared, obj()),
}


async def list_tools(ctx, params):
    listed = [
        types.Tool(name=name, description=f"Tests {name}", input_schema=schema)
        for name, (_, schema) in TOOLS.items()
    ]
    listed += [
        types.Tool(name=name, description="It comes and goes", input_schema=obj())
        for name in extra_tools
    ]
    return types.ListToolsResult(tools=listed)


async def call_tool(ctx, params):
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"no tool {params.name}")
    run, _ = TOOLS[params.name]
    arguments = dict(params.arguments or {})
    arguments["_request"] = dict(ctx.params or {})
    return typed(await run(ctx, arguments), types.CallToolResult)


# Prompts and resources

ARGUMENTS = {
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
}
PROMPTS = [
    "test_simple_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_input_required_result_prompt",
]


async def list_prompts(ctx, params):
    def describe(name):
        arguments = [{"name": one, "required": True} for one in ARGUMENTS.get(name, [])]
        return types.Prompt(name=name, description=f"Tests {name}", arguments=arguments)

    return types.ListPromptsResult(prompts=[describe(name) for name in PROMPTS + extra_prompts])


async def get_prompt(ctx, params):
    arguments = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            content = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            words = f"arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
            content = [text(f"Prompt with arguments: {words}")]
        case "test_prompt_with_embedded_resource":
            uri = arguments["resourceUri"]
            words = "Embedded resource content for testing."
            content = [embedded(uri, words), text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            content = [IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            given = answers(dict(ctx.params or {}))
            if "user_context" not in given:
                question = form("What context should it use?", context=STRING)
                return typed(ask({"user_context": question}), types.GetPromptResult)
            content = [text(json.dumps(given["user_context"]))]
        case other:
            raise MCPError(types.INVALID_PARAMS, f"no prompt {other}")
    messages = [{"role": "user", "content": one} for one in content]
    return typed({"messages": messages}, types.GetPromptResult)


RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}


async def list_resources(ctx, params):
    listed = [types.Resource(uri=uri, name=uri, mime_type=it["mimeType"]) for uri, it in RESOURCES.items()]
    return types.ListResourcesResult(resources=listed)


async def list_templates(ctx, params):
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx, params):
    uri = str(params.uri)
    if found := re.fullmatch(r"test://template/([^/]+)/data", uri):
        words = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        content = {"mimeType": "application/json", "text": json.dumps(words)}
    elif uri in RESOURCES:
        content = RESOURCES[uri]
    else:
        raise MCPError(types.INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
    return typed({"contents": [{"uri": uri} | content]}, types.ReadResourceResult)


async def complete(ctx, params):
    words = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=words, total=len(words)))


async def nothing(ctx, params):
    return types.EmptyResult()


server = Server(
    "fixture",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=nothing,
    on_unsubscribe_resource=nothing,
    on_subscriptions_listen=ListenHandler(bus),
    on_completion=complete,
    on_set_logging_level=nothing,
)


async def serve_stdio():
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    options = server.create_initialization_options(changes)
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


def serve_http():
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # From here on, connections wait until the server accepts them.
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if sys.argv[1] == "stdio":
    anyio.run(serve_stdio)
else:
    serve_http()
