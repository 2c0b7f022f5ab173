use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Layer;

/// All that is needed to know to build the walls around a guest. Plain data: compare it, print
/// it, snapshot it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Whom to become on the host when the host is root. A plain user stays itself.
    pub uid: u32,
    pub hostname: String,
    pub rlimits: Rlimits,
    /// `None`: a guest that needs no files and no processes, in an empty root.
    pub room: Option<Room>,
    /// The layers that the settings let go by name. Each is still tried.
    pub lowered: Vec<Layer>,
}

/// What the kernel holds each process of a guest to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimits {
    /// `None` where an engine reserves far more than it uses.
    pub address_space_bytes: Option<u64>,
    pub stack_bytes: u64,
    pub open_files: u64,
    /// `None` for a guest that cannot start any.
    pub processes: Option<u64>,
    pub cpu_s: Option<u64>,
    pub file_bytes: u64,
}

/// The file tree that programs of a guest live in: read-only but for one bounded file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Room {
    /// Files and directories of the host's, seen read-only at the same path. What is not there
    /// is left out.
    pub shown: Vec<PathBuf>,
    /// Files and directories of the host's at other paths: (source, target).
    pub placed: Vec<(PathBuf, PathBuf)>,
    /// Files of our own: (path, text).
    pub written: Vec<(PathBuf, String)>,
    /// Directories of the user's that guests may work in, or below. Of each the room has the
    /// first folder, empty: a worker that is given one shows it at its real path.
    pub work_dirs: Vec<PathBuf>,
    pub disk_bytes: u64,
    pub disk_files: u32,
}

impl Launch {
    /// For an interpreter that needs no files, no processes and no network of its own.
    pub fn interpreter(memory_bytes: u64, lowered: Vec<Layer>) -> Launch {
        let rlimits = Rlimits {
            // The engine stops at `memory_bytes`; the program itself and its stack come on top.
            address_space_bytes: Some(memory_bytes + (512 << 20)),
            stack_bytes: 64 << 20,
            open_files: 16,
            processes: None,
            cpu_s: None,
            file_bytes: 0,
        };
        Launch { uid: UID, hostname: HOSTNAME.to_owned(), rlimits, room: None, lowered }
    }

    /// For programs in a room.
    pub fn programs(room: Room, rlimits: Rlimits, lowered: Vec<Layer>) -> Launch {
        Launch { uid: UID, hostname: HOSTNAME.to_owned(), rlimits, room: Some(room), lowered }
    }
}

const UID: u32 = 65_534;
const HOSTNAME: &str = "sandbox";

impl Rlimits {
    /// Numbers of resources as the kernel counts them, and their limits.
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
