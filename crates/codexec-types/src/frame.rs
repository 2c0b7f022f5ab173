//! The messages between host and guest on the worker's socket: a length (`u32`, little endian) and
//! that many bytes of JSON.

use serde::{Deserialize, Serialize};

use crate::{Image, Json, Language, OutputStream, Thrown, ToolDetail, ToolKind};

/// Maximum length of a frame, in both directions.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

pub const FRAME_HEADER_BYTES: usize = 4;

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FrameError {
    #[error("frame of {bytes} bytes exceeds the maximum of {MAX_FRAME_BYTES}")]
    TooLong { bytes: usize },
    #[error("malformed frame: its body is not a known message")]
    Malformed,
}

/// Returns the length of the body that follows this header.
pub fn frame_length(header: [u8; FRAME_HEADER_BYTES]) -> Result<usize, FrameError> {
    let bytes = u32::from_le_bytes(header) as usize;
    if bytes > MAX_FRAME_BYTES { Err(FrameError::TooLong { bytes }) } else { Ok(bytes) }
}

/// A message from the guest. Hostile code writes it, so the host checks every field on use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromGuest {
    /// The code was parsed; from here on the guest's own code runs.
    Compiled,
    Output {
        stream: OutputStream,
        text: String,
    },
    Ask {
        id: u32,
        ask: Ask,
    },
    Progress(String),
    Image(Image),
    /// The code of a worker that runs one execution has returned.
    Returned(Json),
    Threw(Thrown),
    /// A cell of a session has ended. The worker waits for the next cell.
    CellEnded {
        /// The cell's key: see [`Cell::key`].
        key: String,
        ending: CellEnding,
    },
}

/// How a cell ended, as reported by the guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CellEnding {
    Returned(Json),
    Threw(Thrown),
    /// For a shell: the last command's exit status, which is not 0.
    Exited(i32),
    /// Stopped by [`ToGuest::Interrupt`]; the session's state is kept.
    Interrupted,
    /// The session's current directory, this path, cannot be entered any more. Nothing of the
    /// cell ran, and the session is in its working directory.
    DirectoryGone(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToGuest {
    /// The first frame. A worker that serves one execution gets only answers after it.
    Start(WorkerJob),
    Answer(AskAnswer),
    /// The next code of a session, sent after the previous cell has ended.
    Cell(Cell),
    /// Stop the running cell and keep the session's state.
    Interrupt,
}

/// One piece of code sent to a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Counts from 1, without gaps.
    pub number: u32,
    /// Random and unique to the cell: only a process that received the cell can report its end.
    pub key: String,
    pub code: String,
    pub input: Json,
    /// The program's arguments.
    pub args: Vec<String>,
}

/// Everything that a worker needs to run one guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerJob {
    pub language: Language,
    pub code: String,
    pub input: Json,
    /// The program's arguments.
    pub args: Vec<String>,
    /// True if the worker stays and waits for cells; `code` is empty then.
    pub is_session: bool,
    /// True if the program's stdin has data; otherwise it is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_stdin: bool,
    /// The servers whose tools the guest may call.
    pub servers: Vec<String>,
    /// Memory limit of the guest's own engine; the sandbox enforces its limit as well.
    pub memory_bytes: u64,
}

/// A request from the guest to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Call a tool by server and tool name.
    Tool {
        server: String,
        tool: String,
        args: Json,
    },
    /// Call a tool by one joined name: `mcp__server__tool`, `server.tool`, `server:tool`.
    Named {
        name: String,
        args: Json,
    },
    /// List all servers, with a summary of each.
    Servers {},
    /// List the names of one server's tools.
    ToolNames {
        server: String,
    },
    /// List every tool that contains one of the words; without words, all tools.
    Discover {
        #[serde(deserialize_with = "read_words")]
        words: Vec<String>,
    },
    /// Find the best matches for a query; without a query, list all tools in order.
    Search {
        query: String,
        limit: u32,
        /// Restricts the search to this server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        #[serde(default, skip_serializing_if = "is_default")]
        kind: ToolKind,
        #[serde(default, skip_serializing_if = "is_default")]
        detail: ToolDetail,
    },
    /// Return one tool's full definition.
    Schema {
        name: String,
    },
    /// Return a help text for the code's author: about one tool, one server, or everything.
    Help {
        name: Option<String>,
    },
    /// List the resources of one server, or of all servers.
    Resources {
        server: Option<String>,
    },
    /// List the resource templates of one server, or of all servers.
    ResourceTemplates {
        server: Option<String>,
    },
    ReadResource {
        server: String,
        uri: String,
    },
    /// List the prompts of one server, or of all servers.
    Prompts {
        server: Option<String>,
    },
    Prompt {
        server: String,
        name: String,
        args: Json,
    },
    /// Call a function of codexec itself: sessions, scripts, packages, logs. The name is that of a
    /// tool of the toolset `codexec`.
    Own {
        name: String,
        args: Json,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskAnswer {
    pub id: u32,
    pub result: Result<Json, CallError>,
}

/// The error of a failed [`Ask`]. The guest can catch it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallError {
    pub code: CallCode,
    pub message: String,
    pub server: Option<String>,
    pub tool: Option<String>,
    /// After how many seconds a program may call again. Code reads it in the message.
    #[serde(skip)]
    pub retry_s: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CallCode {
    InvalidArgs,
    ServerNotAllowed,
    ToolNotAllowed,
    ToolNotFound,
    /// The tool's definition is waiting for the user's approval.
    ToolQuarantined,
    /// The tool returned `isError`, or its server could not be reached or did not answer in time.
    UpstreamError,
    /// The server failed too often, and is not called for a while.
    CircuitOpen,
    /// Too many calls run at the server or wait for it.
    ServiceUnavailable,
    /// The client made too many requests in too short a time.
    RateLimited,
}

/// Keeps at most one word more than an ask may have, and skips the rest.
fn read_words<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct Words;
    impl<'de> serde::de::Visitor<'de> for Words {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of words")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut from: A,
        ) -> Result<Vec<String>, A::Error> {
            let mut words = Vec::new();
            while words.len() <= crate::bounds::MAX_WORDS {
                match from.next_element()? {
                    Some(word) => words.push(word),
                    None => return Ok(words),
                }
            }
            while from.next_element::<serde::de::IgnoredAny>()?.is_some() {}
            Ok(words)
        }
    }
    from.deserialize_seq(Words)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Ask {
    /// Returns the total length of the ask's texts.
    pub fn text_bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Ask::Tool { server, tool, args } => server.len() + tool.len() + args.text().len(),
            Ask::Prompt { server, name, args } => server.len() + name.len() + args.text().len(),
            Ask::Named { name, args } | Ask::Own { name, args } => name.len() + args.text().len(),
            Ask::ReadResource { server, uri } => server.len() + uri.len(),
            Ask::Discover { words } => words.iter().map(String::len).sum(),
            Ask::Search { query, server, .. } => query.len() + length(server),
            Ask::Schema { name } | Ask::ToolNames { server: name } => name.len(),
            Ask::Help { name: text }
            | Ask::Resources { server: text }
            | Ask::ResourceTemplates { server: text }
            | Ask::Prompts { server: text } => length(text),
            Ask::Servers {} => 0,
        }
    }

    /// True if the ask goes to an upstream, and so counts against the limit on tool calls.
    pub fn is_tool_call(&self) -> bool {
        match self {
            Ask::Tool { .. }
            | Ask::Named { .. }
            | Ask::Resources { .. }
            | Ask::ResourceTemplates { .. }
            | Ask::ReadResource { .. }
            | Ask::Prompts { .. }
            | Ask::Prompt { .. } => true,
            Ask::Servers {}
            | Ask::ToolNames { .. }
            | Ask::Discover { .. }
            | Ask::Search { .. }
            | Ask::Schema { .. }
            | Ask::Help { .. }
            | Ask::Own { .. } => false,
        }
    }
}

impl CallError {
    pub fn new(code: CallCode, message: impl Into<String>) -> CallError {
        CallError { code, message: message.into(), server: None, tool: None, retry_s: None }
    }

    #[must_use]
    pub fn about(mut self, server: &str, tool: &str) -> CallError {
        self.server = Some(server.to_owned());
        self.tool = Some(tool.to_owned());
        self
    }
}

impl FromGuest {
    pub fn decode(body: &[u8]) -> Result<FromGuest, FrameError> {
        serde_json::from_slice(body).map_err(|_| FrameError::Malformed)
    }

    /// Returns header and body, ready to be written.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        encode(self)
    }
}

impl ToGuest {
    pub fn decode(body: &[u8]) -> Result<ToGuest, FrameError> {
        serde_json::from_slice(body).map_err(|_| FrameError::Malformed)
    }

    /// Returns header and body, ready to be written.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        encode(self)
    }
}

fn encode(frame: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; FRAME_HEADER_BYTES];
    serde_json::to_writer(&mut bytes, frame).map_err(|_| FrameError::Malformed)?;
    let length = bytes.len() - FRAME_HEADER_BYTES;
    if length > MAX_FRAME_BYTES {
        return Err(FrameError::TooLong { bytes: length });
    }
    let header = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    for (to, from) in bytes.iter_mut().zip(header) {
        *to = from;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
