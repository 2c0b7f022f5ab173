//! Safe access to files on the host: codexec's own data files, and files that others wrote.
//!
//! Invariant: no file can block or flood this process, and no data file is used that another user
//! could have written or that is damaged. All functions are synchronous; async callers poll
//! [`FileLock::try_acquire`].

pub mod private_files;
pub mod sealed_files;

mod bounded_read;
mod exposure;
mod file_lock;
mod file_stamp;
mod json_hash;
mod process_lock;

pub use bounded_read::{read_bytes, read_text};
pub use exposure::Exposure;
pub use file_lock::FileLock;
pub use file_stamp::FileStamp;
pub use json_hash::hash_json;
pub use process_lock::ProcessLock;
