//! The instructions that an agent gets when it connects.

use codexec_types::ServerName;

/// Clients cut instructions at 2 KB, so the essentials come first and the list of servers last.
const MAX_BYTES: usize = 2_000;

pub(super) const COMPACT: &str = "Write code instead of calling tools one by one: execute_code runs TypeScript, JavaScript, \
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

pub(super) const DIRECT: &str = "Each tool of the user's MCP servers is here as `server__tool`.\n";

/// Appends the names of the servers to the texts of the toolsets.
pub(super) fn with_servers(mut text: String, servers: &[ServerName]) -> String {
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
