use serde::{Deserialize, Serialize};

use crate::Layer;

/// All that keeper and worker need to know to build the walls. Plain data: compare it, print
/// it, snapshot it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// Whom to become on the host when the host is root. A plain user stays itself.
    pub uid: u32,
    pub hostname: String,
    pub address_space_bytes: u64,
    pub stack_bytes: u64,
    pub open_files: u64,
    /// The layers that the settings let go by name. Each is still tried.
    pub lowered: Vec<Layer>,
}

impl Launch {
    /// For an interpreter that needs no files, no processes and no network of its own.
    pub fn interpreter(memory_bytes: u64, lowered: Vec<Layer>) -> Launch {
        Launch {
            uid: 65_534,
            hostname: "sandbox".to_owned(),
            // The engine stops at `memory_bytes`; the program itself and its stack come on top.
            address_space_bytes: memory_bytes + (512 << 20),
            stack_bytes: 64 << 20,
            open_files: 16,
            lowered,
        }
    }
}
