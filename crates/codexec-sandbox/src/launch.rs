use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Layer;

/// The plan of a guest's sandbox, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The guest's user on the host, if the host runs as root. Otherwise the user stays the same.
    pub uid: u32,
    pub hostname: String,
    pub rlimits: Rlimits,
    /// The rootfs; `None` for a guest without files and processes, in an empty root.
    pub rootfs: Option<Rootfs>,
    /// The layers that the settings lower by name. Each is still tried.
    pub lowered: Vec<Layer>,
    /// The limit on private memory per process, if no cgroup bounds all processes together. Shared
    /// memory is then refused, because no process accounts for it once it is unmapped.
    pub data_bytes: Option<u64>,
}

/// The rlimits of each process of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimits {
    /// `None` for an engine that reserves far more than it uses.
    pub address_space_bytes: Option<u64>,
    pub stack_bytes: u64,
    pub open_files: u64,
    /// `None` for a guest that cannot start processes.
    pub processes: Option<u64>,
    pub cpu_s: Option<u64>,
    pub file_bytes: u64,
}

/// The root file system of a guest's programs: read-only, except for one tmpfs of bounded size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rootfs {
    /// The host's files and directories that are bind-mounted read-only at the same path. Missing
    /// ones are skipped.
    pub shown: Vec<PathBuf>,
    /// The host's files and directories that are bind-mounted at other paths: (source, target).
    pub placed: Vec<(PathBuf, PathBuf)>,
    /// Generated files: (path, text).
    pub written: Vec<(PathBuf, String)>,
    /// The user's directories in which, or below which, guests may work. The rootfs contains the
    /// first path component of each as an empty folder, so that a worker can mount it there.
    pub work_dirs: Vec<PathBuf>,
    /// The size of the workspace.
    pub disk_bytes: u64,
    /// The number of inodes of the workspace.
    pub disk_files: u32,
}

impl Launch {
    /// Plans the sandbox of an interpreter without files, processes and network.
    pub fn for_interpreter(memory_bytes: u64, lowered: Vec<Layer>) -> Launch {
        let rlimits = Rlimits {
            // The engine's heap is limited to `memory_bytes`; the binary and its stack add to that.
            address_space_bytes: Some(memory_bytes + (512 << 20)),
            stack_bytes: 64 << 20,
            open_files: 16,
            processes: None,
            cpu_s: None,
            file_bytes: 0,
        };
        Launch::new(rlimits, None, lowered)
    }

    /// Plans the sandbox of programs in a rootfs.
    pub fn for_programs(rootfs: Rootfs, rlimits: Rlimits, lowered: Vec<Layer>) -> Launch {
        Launch::new(rlimits, Some(rootfs), lowered)
    }

    /// Limits memory per process, for a host without cgroups. The limit is generous because
    /// programs reserve more than they use: each thread takes 8 MiB for its stack.
    pub fn without_cgroups(self, memory_bytes: u64) -> Launch {
        Launch { data_bytes: Some(2 * memory_bytes + (2 << 30)), ..self }
    }

    fn new(rlimits: Rlimits, rootfs: Option<Rootfs>, lowered: Vec<Layer>) -> Launch {
        let hostname = HOSTNAME.to_owned();
        Launch { uid: UID, hostname, rlimits, rootfs, lowered, data_bytes: None }
    }
}

const UID: u32 = 65_534;
const HOSTNAME: &str = "sandbox";

impl Rlimits {
    /// Returns the kernel's resource numbers and their limits.
    pub fn numbers(&self) -> Vec<(u32, u64)> {
        let mut numbers = vec![
            (libc::RLIMIT_NOFILE, self.open_files),
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, self.file_bytes),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_MSGQUEUE, 0),
            (libc::RLIMIT_STACK, self.stack_bytes),
        ];
        numbers.extend(self.address_space_bytes.map(|bytes| (libc::RLIMIT_AS, bytes)));
        numbers.extend(self.processes.map(|processes| (libc::RLIMIT_NPROC, processes)));
        numbers.extend(self.cpu_s.map(|seconds| (libc::RLIMIT_CPU, seconds)));
        numbers
    }
}
