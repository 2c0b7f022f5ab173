use std::path::PathBuf;

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
        let mut cargo = step::cargo(".".as_ref());
        let text = step::output(cargo.args(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        let path = |name: &str| -> Result<PathBuf> {
            let path = metadata.get(name).and_then(Value::as_str);
            Ok(path.with_context(|| format!("cargo metadata has no {name}"))?.into())
        };
        Ok(Workspace { root: path("workspace_root")?, target: path("target_directory")?, metadata })
    }

    pub(crate) fn has_benches(&self) -> bool {
        let packages = self.metadata.get("packages").and_then(Value::as_array);
        let targets = packages.into_iter().flatten().filter_map(|package| package.get("targets"));
        let mut kinds = targets
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(|target| target.pointer("/kind/0").and_then(Value::as_str));
        kinds.any(|kind| kind == "bench")
    }
}
