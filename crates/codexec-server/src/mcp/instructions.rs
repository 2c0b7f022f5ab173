use codexec_types::ServerName;

use crate::{Toolset, Toolsets};

/// Clients cut instructions at 2 KB, so the essentials come first and the list of servers last.
const MAX_BYTES: usize = 2_000;

const CODE: &str = "Write code instead of calling tools one by one: execute_code runs TypeScript, JavaScript, \
 Python, Bash or Node.js in a sandbox where all of the user's MCP servers are `tools.<server>.<tool>(args)`. Loop, \
 filter and join there, and return only what matters.\n\
 Example: const hits = await searchTools('create issue', 3); \
 const r = await tools.github.list_issues({ owner: 'a', repo: 'b' }); \
 return r.filter(i => i.comments > 5).map(i => i.title);\n\
 In the code: searchTools(query), getToolSchema(name), help(name), callMCPTool(name, args), \
 Promise.all for many calls at once, `input`, console.log. Tool errors are thrown as ToolError.\n\
 Python: await tools.github.list_issues(owner='a'), search_tools(query); the last expression \
 is the value, figures come back as images. Bash: `mcp server tool --arg value`, `mcp search \
 words`; what it prints comes back. Python, Bash and Node.js have files: new ones are kept \
 and listed, `working_dir` is a directory of the user's to work in.\n";

const CODE_EXECUTOR: &str = "executeTypescript and executePython run code in a sandbox. Find tools in \
 the code: discoverMCPTools(), searchTools(query), getToolSchema(name); Python the same in \
 snake_case. Call them: await callMCPTool('mcp__server__tool', {..}), each named in allowedTools \
 (mcp__server__* is all of a server's).\n";

const CODE_EXECUTION_MODE: &str = "run_python runs Python in a sandbox. `from mcp import runtime` \
 finds tools of all servers: runtime.search_tool_docs(query), runtime.query_tool_docs(server). \
 Name the servers to call in `servers`, then: await mcp_<alias>.tool(..).\n";

const MCPPROXY: &str = "code_execution runs JavaScript or TypeScript in a sandbox: \
 call_tool(server, tool, args) waits and gives {ok, result} or {ok, error}, call_tools([..]) calls \
 many at once. retrieve_tools finds tools first.\n";

pub(super) fn text(toolsets: &Toolsets, servers: &[ServerName]) -> String {
    let mut text = String::new();
    if toolsets.has(Toolset::Compact) {
        text.push_str(CODE);
    }
    for (set, about) in [
        (Toolset::CodeExecutor, CODE_EXECUTOR),
        (Toolset::CodeExecutionMode, CODE_EXECUTION_MODE),
        (Toolset::Mcpproxy, MCPPROXY),
    ] {
        if toolsets.has(set) {
            text.push_str(about);
        }
    }
    if toolsets.has(Toolset::Direct) {
        text.push_str("Each tool of the user's MCP servers is here as `server__tool`.\n");
    }
    if servers.is_empty() {
        text.push_str("No servers are configured.");
        return text;
    }
    text.push_str("Servers: ");
    for (index, server) in servers.iter().enumerate() {
        let rest = servers.len() - index;
        if text.len() + server.as_str().len() > MAX_BYTES - 40 {
            text.push_str(&format!("and {rest} more (Object.keys(tools))"));
            return text;
        }
        let separator = if rest == 1 { "." } else { ", " };
        text.push_str(&format!("{server}{separator}"));
    }
    text
}

#[cfg(test)]
mod tests;
