//! All toolsets that users can choose.

use std::sync::Arc;

use codexec_compat::settings::Seeds;
use codexec_compat::{CodeExecutionModeTools, CodeExecutorTools, McpproxyTools};
use codexec_server::mcp::{
    CodexecTools, CompactTools, DirectTools, InvalidToolset, Toolset, ToolsetNames, Toolsets,
};

/// Parses the names of toolsets, as users write them.
pub(crate) fn parse<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<ToolsetNames, InvalidToolset> {
    let all = all(&Seeds::default());
    ToolsetNames::parse(names, all.iter().map(|set| set.name()).collect())
}

/// Joins the chosen toolsets.
pub(crate) fn join(chosen: &ToolsetNames, seeds: &Seeds) -> Toolsets {
    Toolsets::new(all(seeds).into_iter().filter(|set| chosen.has(set.name())).collect())
}

/// Returns toolsets by their names, or the `default` ones.
pub(crate) fn source(default: ToolsetNames, seeds: Seeds) -> codexec_http::ToolsetSource {
    Box::new(move |names| {
        let chosen = match names {
            Some(names) => parse([names]).ok()?,
            None => default.clone(),
        };
        Some((chosen.names().to_vec(), join(&chosen, &seeds)))
    })
}

/// Returns all toolsets, ordered by precedence: a seed's tool comes before another one of the same
/// name.
fn all(seeds: &Seeds) -> Vec<Arc<dyn Toolset>> {
    vec![
        Arc::new(CodexecTools),
        Arc::new(CodeExecutorTools::new(seeds.executor.clone())),
        Arc::new(CodeExecutionModeTools::new(seeds.bridge.clone())),
        Arc::new(McpproxyTools::new(seeds.proxy.clone())),
        Arc::new(CompactTools),
        Arc::new(DirectTools),
    ]
}

#[cfg(test)]
mod tests {
    use codexec_types::ServerName;

    use super::*;

    #[test]
    fn names_are_parsed_and_all_are_listed() {
        assert_eq!(parse(["direct, compact,direct"]), parse(["compact", "direct"]));
        assert_eq!(parse(["compact"]), Ok(ToolsetNames::default()));
        let unknown = parse(["compact,dircet"]).expect_err("unknown");
        let sentence = "there is no toolset \"dircet\"; there are codexec, code-executor, \
                        code-execution-mode, mcpproxy, compact, direct";
        assert_eq!(unknown.to_string(), sentence);
    }

    #[test]
    fn every_toolset_is_explained_and_all_together_stay_under_two_kilobytes() {
        let server = |index| ServerName::new(&format!("server-{index}")).expect("name");
        let servers: Vec<ServerName> = (0..500).map(server).collect();
        for (set, word) in [
            ("code-executor", "executePython"),
            ("code-execution-mode", "run_python"),
            ("mcpproxy", "code_execution"),
            ("direct", "server__tool"),
        ] {
            let chosen = parse([set]).expect("a toolset");
            let one = join(&chosen, &Seeds::default()).instructions(&servers);
            assert!(one.contains(word) && one.len() <= 2_000, "{one}");
        }
        let all = Toolsets::new(all(&Seeds::default())).instructions(&servers);
        assert!(all.len() <= 2_000, "{}", all.len());
    }
}
