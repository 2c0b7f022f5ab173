use std::{
    env::consts::ARCH,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::step;

/// The workspace as `cargo metadata` describes it.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) metadata: Value,
}

impl Workspace {
    pub(crate) fn read() -> Result<Workspace> {
        let metadata = read_metadata(".".as_ref(), &["--no-deps"])?;
        let path = |name: &str| -> Result<PathBuf> {
            let path = metadata.get(name).and_then(Value::as_str);
            Ok(path.with_context(|| format!("cargo metadata has no {name}"))?.into())
        };
        Ok(Workspace { root: path("workspace_root")?, target: path("target_directory")?, metadata })
    }

    /// Reads the packages that a build for this machine uses, direct or not.
    pub(crate) fn read_dependencies(&self) -> Result<Value> {
        let platform = format!("{ARCH}-unknown-linux-gnu");
        read_metadata(&self.root, &["--locked", "--filter-platform", &platform])
    }
}

fn read_metadata(folder: &Path, options: &[&str]) -> Result<Value> {
    let mut cargo = step::cargo(folder);
    let text = step::output(cargo.args(["metadata", "--format-version", "1"]).args(options))?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}
