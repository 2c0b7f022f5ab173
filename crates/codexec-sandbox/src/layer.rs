use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// One layer of isolation between a guest and the host. Only the settings can lower a layer, by its
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// An unprivileged user in its own user namespace.
    User,
    Pid,
    Mount,
    Network,
    Ipc,
    Uts,
    CgroupNamespace,
    /// An empty read-only root instead of the host's.
    Root,
    Landlock,
    Capabilities,
    NoNewPrivileges,
    Rlimits,
    Seccomp,
    /// Limits on memory and processes for the whole process tree. Without cgroups, rlimits and the
    /// host's own checks apply, and the posture says so.
    Cgroup,
}

impl Layer {
    pub const ALL: [Layer; 14] = [
        Layer::User,
        Layer::Pid,
        Layer::Mount,
        Layer::Network,
        Layer::Ipc,
        Layer::Uts,
        Layer::CgroupNamespace,
        Layer::Root,
        Layer::Landlock,
        Layer::Capabilities,
        Layer::NoNewPrivileges,
        Layer::Rlimits,
        Layer::Seccomp,
        Layer::Cgroup,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Layer::User => "user",
            Layer::Pid => "pid",
            Layer::Mount => "mount",
            Layer::Network => "network",
            Layer::Ipc => "ipc",
            Layer::Uts => "uts",
            Layer::CgroupNamespace => "cgroup-namespace",
            Layer::Root => "root",
            Layer::Landlock => "landlock",
            Layer::Capabilities => "capabilities",
            Layer::NoNewPrivileges => "no-new-privileges",
            Layer::Rlimits => "rlimits",
            Layer::Seccomp => "seccomp",
            Layer::Cgroup => "cgroup",
        }
    }

    pub fn parse(name: &str) -> Option<Layer> {
        Layer::ALL.into_iter().find(|layer| layer.name() == name)
    }

    /// Describes the layer's effect on a guest, for people.
    pub fn purpose(self) -> &'static str {
        match self {
            Layer::User => "an unprivileged user of its own",
            Layer::Pid => "sees and signals no other process",
            Layer::Mount => "its own view of the file tree",
            Layer::Network => "no network interface",
            Layer::Ipc => "no shared memory with others",
            Layer::Uts => "a host name of its own",
            Layer::CgroupNamespace => "does not see the host's cgroups",
            Layer::Root => "an empty read-only root directory",
            Layer::Landlock => "no file access, signals or abstract sockets, a second time",
            Layer::Capabilities => "no capability, not even in its own namespaces",
            Layer::NoNewPrivileges => "no program can raise its rights",
            Layer::Rlimits => "bounded address space, files and core dumps",
            Layer::Seccomp => "only the system calls on the list",
            Layer::Cgroup => "memory and process limits on the whole tree",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A layer that is not in force, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingLayer {
    pub layer: Layer,
    pub reason: String,
}

/// The layers in force around a guest, given by those that are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posture {
    pub missing: Vec<MissingLayer>,
}

impl Posture {
    /// Returns the names of the layers in force.
    pub fn names(&self) -> Vec<&'static str> {
        self.in_force().map(Layer::name).collect()
    }

    pub fn in_force(&self) -> impl Iterator<Item = Layer> {
        Layer::ALL.into_iter().filter(|layer| self.missing.iter().all(|m| m.layer != *layer))
    }
}

impl fmt::Display for Posture {
    /// Writes the layers in force, then the missing ones with their reasons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))?;
        for missing in &self.missing {
            write!(f, " -{} ({})", missing.layer, missing.reason)?;
        }
        Ok(())
    }
}

/// A layer that failed and that the plan does not lower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerError {
    pub layer: Layer,
    pub step: String,
    pub errno: i32,
}

impl LayerError {
    pub fn new(layer: Layer, step: &str, errno: impl Into<i32>) -> LayerError {
        LayerError { layer, step: step.to_owned(), errno: errno.into() }
    }
}

impl fmt::Display for LayerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "sandbox layer `{}` is not available: {}: {error}", self.layer, self.step)
    }
}

impl std::error::Error for LayerError {}
