use super::Desk;

#[test]
fn help_of_codexec() {
    insta::assert_snapshot!(Desk::new(&[]).run(&["--help"]).stdout, @r#"
    Run agents' code in strong sandboxes, with every MCP tool at hand.

    Without a command, codexec serves MCP on standard input and output.

    Usage: codexec [OPTIONS] [COMMAND]

    Commands:
      serve     Serve MCP on standard input and output
      exec      Run code and print its result
      code      Run JavaScript and TypeScript as MCPProxy does
      scripts   Scripts that are kept: find, read, save and run them
      logs      What has run: search it, or read one execution whole
      sessions  Sessions, which keep variables, imports and files between executions
      packages  Packages that code can use
      tools     Look at the tools that code can call
      servers   See and change which MCP servers code can reach
      migrate   Print what you have set for a system that codexec replaces, as settings of codexec
      doctor    Tell what protects you on this machine, and what does not
      help      Print this message or the help of the given subcommand(s)

    Options:
          --mcp-config <FILE>
              A file with an `mcpServers` key; may be given several times, the last wins

          --config <FILE>
              Settings other than $CODEXEC_HOME/config.toml

          --toolset <NAME>
              Which tools a client is shown: compact (the default), codexec, code-executor,
              code-execution-mode, mcpproxy, direct, or several as compact,direct

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version
    "#);
}

#[test]
fn help_of_exec() {
    insta::assert_snapshot!(Desk::new(&[]).run(&["exec", "--help"]).stdout, @r#"
    Run code and print its result

    Usage: codexec exec [OPTIONS] [CODE] [-- <ARGS>...]

    Arguments:
      [CODE]     The code; without it and without --file it is read from standard input
      [ARGS]...  Arguments for the code itself

    Options:
      -l, --language <LANGUAGE>      typescript, javascript, python, bash or node, or ts, js, py, sh,
                                     mjs; by default as the file's name ends, else typescript
          --mcp-config <FILE>        A file with an `mcpServers` key; may be given several times, the
                                     last wins
          --config <FILE>            Settings other than $CODEXEC_HOME/config.toml
      -f, --file <FILE>              Read the code from a file
      -s, --script <NAME>            Run a saved script, in its own language
          --toolset <NAME>           Which tools a client is shown: compact (the default), codexec,
                                     code-executor, code-execution-mode, mcpproxy, direct, or several as
                                     compact,direct
      -i, --input <JSON>             JSON that the code finds as `input`
      -t, --timeout <TIMEOUT>        How long it may run, for example 500ms, 10s or 2m
      -w, --working-dir <DIR>        A directory of yours to work in, beside those that the settings
                                     allow; not for typescript and javascript, which have no files
          --allowed-tools <PATTERN>  The tools it may call, for example github.* or
                                     time.get_current_time; "" denies all
          --max-tool-calls <N>       How many tool calls it may make
          --json                     Print JSON
      -h, --help                     Print help
    "#);
}

#[test]
fn help_of_tools() {
    insta::assert_snapshot!(Desk::new(&[]).run(&["tools", "--help"]).stdout, @r#"
    Look at the tools that code can call

    Usage: codexec tools [OPTIONS] <COMMAND>

    Commands:
      list    All tools, one a line
      search  The best matches for a sentence
      stats   What listing every tool would cost an agent, and what codexec's own few cost
      schema  One tool's whole definition
      help    Print this message or the help of the given subcommand(s)

    Options:
          --mcp-config <FILE>  A file with an `mcpServers` key; may be given several times, the last
                               wins
          --config <FILE>      Settings other than $CODEXEC_HOME/config.toml
          --toolset <NAME>     Which tools a client is shown: compact (the default), codexec,
                               code-executor, code-execution-mode, mcpproxy, direct, or several as
                               compact,direct
      -h, --help               Print help
    "#);
}
