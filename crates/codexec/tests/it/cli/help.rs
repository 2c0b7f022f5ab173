use super::CliHome;

#[test]
fn help_of_codexec() {
    insta::assert_snapshot!(CliHome::new(&[]).run(&["--help"]).stdout, @r#"
    Run agents' code in strong sandboxes, with every MCP tool at hand.

    Without a command, codexec serves MCP on standard input and output.

    Usage: codexec [OPTIONS] [COMMAND]

    Commands:
      serve     Serve MCP on standard input and output, or over HTTP
      exec      Run code, and print its output and its result
      code      Run JavaScript and TypeScript as MCPProxy does
      scripts   Find, read, save and run saved scripts
      logs      Search past executions, or show one in full
      sessions  List sessions, or work in one; a session keeps variables, imports and files
      packages  Install, list and remove packages that code can use
      tools     List and search the tools that code can call
      servers   List, add, approve and change the MCP servers that code can reach
      token     Make, list and revoke the tokens of clients that use HTTP
      migrate   Print your settings for a system that codexec replaces as codexec settings
      doctor    Check which sandbox layers, languages and servers work on this machine
      help      Print this message or the help of the given subcommand(s)

    Options:
          --mcp-config <FILE>
              A file with an `mcpServers` key; may be given several times, the last one wins

          --config <FILE>
              Read settings from this file instead of $CODEXEC_HOME/config.toml

          --toolset <NAME>
              The tools that clients see: compact (the default), codexec, code-executor,
              code-execution-mode, mcpproxy, direct, or several like compact,direct

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version
    "#);
}

#[test]
fn help_of_tools() {
    insta::assert_snapshot!(CliHome::new(&[]).run(&["tools", "--help"]).stdout, @r#"
    List and search the tools that code can call

    Usage: codexec tools [OPTIONS] <COMMAND>

    Commands:
      list    List all tools with a summary of each
      search  Search tools by what they do
      stats   Compare the tokens that listing every tool costs with the tokens of codexec's own tools
      schema  Show one tool's full definition
      help    Print this message or the help of the given subcommand(s)

    Options:
          --mcp-config <FILE>  A file with an `mcpServers` key; may be given several times, the last one
                               wins
          --config <FILE>      Read settings from this file instead of $CODEXEC_HOME/config.toml
          --toolset <NAME>     The tools that clients see: compact (the default), codexec,
                               code-executor, code-execution-mode, mcpproxy, direct, or several like
                               compact,direct
      -h, --help               Print help
    "#);
}
