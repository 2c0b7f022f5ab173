pub(super) const USAGE: &str = r#"mcp: call tools of MCP servers from bash

  mcp <server> <tool> [--name value]... [--json '{..}']   call a tool
  mcp call <server.tool> [--name value]... [--json ..]    the same, by one name
  mcp search <words...> [--limit N]                       the best tools for a task
  mcp tools [server]                                      the names of all tools
  mcp schema <server.tool>                                one tool's whole definition
  mcp resources [server], mcp templates [server]          what can be read
  mcp read <server> <uri>                                 read it
  mcp prompts [server]                                    the prompts there are
  mcp prompt <server> <name> [--name value]...            one prompt's messages
  mcp show <picture.png>...                               give pictures back with the result
  mcp help [server | server.tool]                         how to use it, in words

Arguments of a tool:
  --name value, --name=value   the tool's schema says whether 5 is a number or a text
  --name                       alone: true
  --name a --name b            several times: an array
  --json '{"id": 1}'           all of them as JSON; --json - reads standard input;
                               a flag beside it wins

Prints the result: a text as it is, anything else as JSON on one line (--pretty: indented).
Errors go to standard error as `mcp: CODE: message`.
A server with the name of one of these words is called by `mcp call`.
Exit code: 0 done, 1 the tool or the host said no, 2 wrong usage.

Examples:
  mcp github get_issue --owner rust-lang --repo rust --number 1 | jq -r .title
  echo '{"path": "a.txt"}' | mcp files read --json -
  for id in 1 2 3; do mcp crm get --id "$id" & done; wait
"#;
