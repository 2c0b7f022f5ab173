use std::path::{Path, PathBuf};

/// The environment of the user who starts codexec, as far as a seed's settings depend on it.
pub struct UserEnvironment {
    pub home: Option<PathBuf>,
    pub current_dir: Option<PathBuf>,
    pub variable: fn(&str) -> Option<String>,
}

impl UserEnvironment {
    /// Replaces a leading `~` by the home directory, if there is one.
    pub fn expand_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        }
    }
}
