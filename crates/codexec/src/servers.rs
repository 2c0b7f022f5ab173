//! Which files name the user's servers, farthest first: the later file wins.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use codexec_gateway::{Parsed, Scope, merge, parse};

use crate::env;

/// Files of other programs can be large, but not endless.
const MAX_FILE_BYTES: u64 = 32 << 20;

/// Reads `~/.claude.json`, `./.mcp.json`, `MCP_CONFIG_PATH`, then `named`. The last two have to
/// be there; the first two need not.
pub(crate) fn read(named: &[PathBuf], own_exe: &Path) -> anyhow::Result<Parsed> {
    let here = std::env::current_dir().ok();
    let mut files = Vec::new();
    if let Some(dir) = env::claude_dir() {
        files.extend(found(&dir.join(".claude.json"), here.as_deref(), own_exe));
    }
    if let Some(dir) = &here {
        files.extend(found(&dir.join(".mcp.json"), None, own_exe));
    }
    let named = env::mcp_config_paths().into_iter().chain(named.iter().cloned());
    for path in named {
        let text = text(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let scope = Scope {
            source: &path,
            project_dir: None,
            own_exe,
            is_named: true,
            env: &env::variable,
        };
        let parsed = parse(&text, &scope);
        if let Some(problem) = parsed.problems.iter().find(|problem| problem.server.is_none()) {
            bail!("{problem}");
        }
        files.push(parsed);
    }
    Ok(merge(files))
}

fn found(path: &Path, project_dir: Option<&Path>, own_exe: &Path) -> Option<Parsed> {
    let text = match text(path) {
        Ok(text) => text,
        Err(error) => {
            if path.exists() {
                tracing::warn!(file = %path.display(), %error, "left out");
            }
            return None;
        }
    };
    let scope = Scope { source: path, project_dir, own_exe, is_named: false, env: &env::variable };
    Some(parse(&text, &scope))
}

fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > MAX_FILE_BYTES {
        bail!("it has {bytes} bytes; at most {MAX_FILE_BYTES} are read");
    }
    let bytes = std::fs::read(path)?;
    String::from_utf8(bytes).context("it is not UTF-8")
}
