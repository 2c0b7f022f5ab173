use codexec_functions::{CallSyntax, describe_guest_functions};
use codexec_typings::TypingsLanguage;

/// Describes how guest code calls tools and codexec's own functions.
pub(super) fn describe_api(voice: TypingsLanguage) -> String {
    match voice {
        TypingsLanguage::TypeScript => {
            TYPESCRIPT.replace(OWN, &describe_guest_functions(CallSyntax::JavaScript))
        }
        TypingsLanguage::Python => {
            PYTHON.replace(OWN, &describe_guest_functions(CallSyntax::Python))
        }
        TypingsLanguage::Bash => BASH.to_owned(),
    }
}

/// Where the texts list codexec's own functions.
const OWN: &str = "  {own functions}";

const TYPESCRIPT: &str = "\
Tools of MCP servers are functions here:
  await tools.SERVER.TOOL({..})              call a tool; tools[\"my-server\"] and tools.my_server both work
  await callMCPTool(\"mcp__SERVER__TOOL\", {..})  the same, by name
  call_tool(\"SERVER\", \"TOOL\", {..})          the same, returns {ok, result} or {ok: false, error}
  await searchTools(\"what it should do\", 10)  the best matching tools
  await discoverMCPTools({search: [\"word\"]})  every tool with one of the words
  await getToolSchema(\"SERVER.TOOL\")          one tool's schemas, and its types as TypeScript
  await resources.list(), resources.read(\"SERVER\", uri), prompts.list(), prompts.get(\"SERVER\", name, {..})
  {own functions}
  await help(\"SERVER\"), await help(\"SERVER.TOOL\")  more about one
A result is the tool's structured content, else its text, parsed when it is JSON.
A failed call throws a ToolError with code, server, tool and message.
Only the last expression or what you return goes back: filter and sum up here.";

const PYTHON: &str = "\
Tools of MCP servers are functions here:
  await tools.SERVER.TOOL(name=value)        call a tool; tools[\"my-server\"] and tools.my_server both work
  await tools.SERVER.TOOL({\"name\": value})   the same, if a name is not valid in Python
  tools.SERVER.TOOL(name=value).result()     the same without await
  await call_mcp_tool(\"mcp__SERVER__TOOL\", {..})  the same, by name
  call_tool(\"SERVER\", \"TOOL\", {..})          returns {\"ok\": True, \"result\": ..} or {\"ok\": False, \"error\": ..}
  await asyncio.gather(..)                   many at once
  await search_tools(\"what it should do\", 10)  the best matching tools
  await discover_mcp_tools([\"word\"])         every tool with one of the words
  await get_tool_schema(\"SERVER.TOOL\")       one tool's schemas, and its types as Python
  await resources.list(), resources.read(\"SERVER\", uri), prompts.list(), prompts.get(\"SERVER\", name, {..})
  {own functions}
  print(help(\"SERVER\")), print(help(\"SERVER.TOOL\"))  more about one
A result is the tool's structured content, else its text, parsed when it is JSON.
A failed call raises a ToolError with code, server, tool and message.
Only the last expression and what you print goes back: filter and sum up here.";

const BASH: &str = "\
Tools of MCP servers are called by the command mcp:
  mcp SERVER TOOL --name value               call a tool; 5 is a number where the tool wants one
  mcp SERVER TOOL --json '{\"name\": 5}'       the same, with all arguments as JSON
  mcp call SERVER.TOOL --name value          the same, by one name
  mcp search what it should do --limit 10    the best matching tools
  mcp tools [SERVER]                         the names of all tools
  mcp schema SERVER.TOOL                     one tool's schemas
  mcp resources, mcp read SERVER URI         list and read resources
  mcp prompts, mcp prompt SERVER NAME        list and get prompts
  mcp help SERVER, mcp help SERVER.TOOL      more about one
A result is a text as it is, or JSON on one line.
A failed call writes the reason to standard error and exits with 1.
Only what is printed goes back: filter and sum up here.";
