pub(super) const USAGE: &str = r#"mcp: call tools of MCP servers from bash

  mcp <server> <tool> [--name value]... [--json '{..}']   call a tool
  mcp call <server.tool> [--name value]... [--json ..]    the same, with one name
  mcp search <words...> [--limit N] [--server S]          find tools for a task; also
             [--read-only | --safe | --destructive]       --detail names, summary or full
  mcp tools [server]                                      list tool names
  mcp schema <server.tool>                                show a tool's full definition
  mcp resources [server], mcp templates [server]          list resources or their templates
  mcp read <server> <uri>                                 read a resource
  mcp prompts [server]                                    list prompts
  mcp prompt <server> <name> [--name value]...            get a prompt's messages
  mcp show <image.png>...                                 return images with the result
  mcp help [server | server.tool]                         explain a server or a tool

Arguments of a tool:
  --name value, --name=value   the tool's schema decides whether 5 is a number or a string
  --name                       without a value: true
  --name a --name b            repeated: an array
  --json '{"id": 1}'           all arguments as JSON; --json - reads standard input;
                               other flags win over it

Prints the result: a string as it is, anything else as JSON on one line (--pretty: indented).
Errors go to standard error as `mcp: CODE: message`.
If a server's name is one of the words above, use `mcp call`.
Exit code: 0 success, 1 the call failed, 2 wrong usage.

Examples:
  mcp github get_issue --owner rust-lang --repo rust --number 1 | jq -r .title
  echo '{"path": "a.txt"}' | mcp files read --json -
  for id in 1 2 3; do mcp crm get --id "$id" & done; wait
"#;
