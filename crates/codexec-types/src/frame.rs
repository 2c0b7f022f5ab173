//! What host and guest say to each other over the worker's one socket: a length (`u32`, little
//! endian) and that many bytes of JSON.

use serde::{Deserialize, Serialize};

use crate::{Detail, Image, Json, Language, Stream, Thrown, ToolKind};

/// No frame is longer, in either direction.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

pub const FRAME_HEADER_BYTES: usize = 4;

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {bytes} bytes is longer than {MAX_FRAME_BYTES}")]
    TooLong { bytes: usize },
    #[error("a frame does not say anything known")]
    Malformed,
}

/// How long the body behind this header is.
pub fn frame_length(header: [u8; FRAME_HEADER_BYTES]) -> Result<usize, FrameError> {
    let bytes = u32::from_le_bytes(header) as usize;
    if bytes > MAX_FRAME_BYTES { Err(FrameError::TooLong { bytes }) } else { Ok(bytes) }
}

/// Written by hostile code: the host checks every field where it reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromGuest {
    /// The code was parsed; what happens from here on, the guest's own code does.
    Compiled,
    Output {
        stream: Stream,
        text: String,
    },
    Ask {
        id: u32,
        ask: Ask,
    },
    Progress(String),
    Image(Image),
    /// How the one code of a worker ended.
    Returned(Json),
    Threw(Thrown),
    /// How one cell of a session ended. The worker waits for the next.
    CellEnded {
        /// The cell's own: see [`Cell::key`].
        key: String,
        ending: CellEnding,
    },
}

/// What a guest says of the end of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CellEnding {
    Returned(Json),
    Threw(Thrown),
    /// For a shell: the last command's status, which is not 0.
    Exited(i32),
    /// It was stopped by [`ToGuest::Interrupt`], and what it did before is kept.
    Interrupted,
    /// The session's current directory, this path, cannot be entered any more. Nothing of the
    /// cell ran, and the session is in its working directory.
    DirectoryGone(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToGuest {
    /// The first frame, and to a worker that serves one execution the only one beside answers.
    Start(Job),
    Answer(Answer),
    /// The next code of a session, when the one before has ended.
    Cell(Cell),
    /// Stop the cell that runs and keep what it has done.
    Interrupt,
}

/// One piece of code that is sent to a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// From 1 on, without a gap.
    pub number: u32,
    /// Random, and new for each cell: only whoever has been given the cell can say how it ended.
    pub key: String,
    pub code: String,
    pub input: Json,
    /// As a program's arguments.
    pub args: Vec<String>,
}

/// All a worker needs to know to run one guest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub language: Language,
    pub code: String,
    pub input: Json,
    /// As a program's arguments.
    pub args: Vec<String>,
    /// Whether the worker stays for cells; there is no code then.
    pub is_session: bool,
    /// The names of the servers whose tools the guest may call.
    pub servers: Vec<String>,
    /// The guest's own engine stops here; the sandbox's limit stands behind it.
    pub memory_bytes: u64,
}

/// Something the guest asks of the host.
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
    /// Every server there is, and in short what it has.
    Servers {},
    /// The names of one server's tools.
    ToolNames {
        server: String,
    },
    /// Every tool in which one of the words occurs; all of them when there are none.
    Discover {
        #[serde(deserialize_with = "read_words")]
        words: Vec<String>,
    },
    /// The best matches for a sentence; without one, all tools in their order.
    Search {
        query: String,
        limit: u32,
        /// Only this server's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        #[serde(default, skip_serializing_if = "is_default")]
        kind: ToolKind,
        #[serde(default, skip_serializing_if = "is_default")]
        detail: Detail,
    },
    /// One tool's whole definition.
    Schema {
        name: String,
    },
    /// A text for the guest's author: about one tool, one server, or everything.
    Help {
        name: Option<String>,
    },
    /// The resources of one server, or of all.
    Resources {
        server: Option<String>,
    },
    /// Their templates.
    ResourceTemplates {
        server: Option<String>,
    },
    ReadResource {
        server: String,
        uri: String,
    },
    /// The prompts of one server, or of all.
    Prompts {
        server: Option<String>,
    },
    Prompt {
        server: String,
        name: String,
        args: Json,
    },
    /// Something of our own: sessions, scripts, packages, logs. The name is that of a tool of
    /// the toolset `codexec`.
    Own {
        name: String,
        args: Json,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub id: u32,
    pub result: Result<Json, CallError>,
}

/// Why an [`Ask`] could not be met. The guest can catch it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallError {
    pub code: CallCode,
    pub message: String,
    pub server: Option<String>,
    pub tool: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CallCode {
    InvalidArgs,
    ServerNotAllowed,
    ToolNotAllowed,
    ToolNotFound,
    /// Its definition waits for the user's approval.
    ToolQuarantined,
    /// The tool said `isError`, or its server could not be reached, or did not answer in time.
    UpstreamError,
}

/// Reads one word more than an ask may have, and only skips the rest.
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
    /// How long its texts are.
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

    /// Whether this goes out to an upstream, and so counts against the limit on tool calls.
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
        CallError { code, message: message.into(), server: None, tool: None }
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

    /// Header and body, ready to be written.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        encode(self)
    }
}

impl ToGuest {
    pub fn decode(body: &[u8]) -> Result<ToGuest, FrameError> {
        serde_json::from_slice(body).map_err(|_| FrameError::Malformed)
    }

    /// Header and body, ready to be written.
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
