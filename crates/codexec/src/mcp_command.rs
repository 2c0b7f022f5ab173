//! The command `mcp` in a Bash guest: one request to the host, over its own connection.

mod flag_values;
mod request;
mod usage;

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use codexec_sandbox::connect_to_broker;
use codexec_types::{
    Ask, AskAnswer, CallError, FRAME_HEADER_BYTES, FromGuest, Image, ImageType, Json,
    MAX_FRAME_BYTES, ToGuest, frame_length,
};
use serde_json::{Map, Value};

use request::{CallOptions, JsonSource, McpRequest, Target};
use usage::USAGE;

/// The host's size limit for one image.
const MAX_IMAGE_BYTES: u64 = 5 << 20;

/// The error of a failed `mcp` command.
#[derive(Debug, thiserror::Error)]
enum McpCommandError {
    #[error("{0}; see mcp --help")]
    Usage(String),
    #[error("this command works only in Bash code that codexec runs")]
    Outside,
    #[error("{}: {}", code_name(.0), .0.message)]
    Refused(CallError),
    #[error("the host does not answer: {0}; at most 64 of these commands run at once")]
    Connection(#[from] io::Error),
}

/// The output of the command on stdout.
enum CommandOutput {
    Nothing,
    Text(String),
    Json { json: Json, is_pretty: bool },
}

/// Runs the command and returns its exit code.
pub(crate) fn run(arguments: Vec<std::ffi::OsString>) -> i32 {
    match execute(arguments) {
        Ok(output) => {
            let text = output.text();
            // The reader may have exited: `mcp tools | head -c 9`.
            let _ = io::stdout().write_all(text.as_bytes());
            0
        }
        Err(failure) => {
            let _ = writeln!(io::stderr(), "mcp: {failure}");
            match failure {
                McpCommandError::Usage(_) | McpCommandError::Outside => 2,
                McpCommandError::Refused(_) | McpCommandError::Connection(_) => 1,
            }
        }
    }
}

fn execute(arguments: Vec<std::ffi::OsString>) -> Result<CommandOutput, McpCommandError> {
    let not_text = |_| McpCommandError::Usage("an argument is not UTF-8".to_owned());
    let arguments: Result<Vec<String>, _> =
        arguments.into_iter().map(std::ffi::OsString::into_string).collect();
    match request::parse(arguments.map_err(not_text)?).map_err(McpCommandError::Usage)? {
        McpRequest::Usage => Ok(CommandOutput::Text(USAGE.trim_end().to_owned())),
        McpRequest::Ask { ask, is_pretty } => {
            Ok(CommandOutput::Json { json: HostConnection::open()?.ask(ask)?, is_pretty })
        }
        McpRequest::AllTools { is_pretty } => {
            let found = HostConnection::open()?.ask(Ask::Discover { words: Vec::new() })?;
            Ok(CommandOutput::Json { json: tool_names(&found), is_pretty })
        }
        McpRequest::Show { files } => {
            let mut connection = HostConnection::open()?;
            for file in &files {
                connection.show(read_image(file)?)?;
            }
            Ok(CommandOutput::Nothing)
        }
        McpRequest::Prompt { server, name, options } => {
            let mut args = read_json(options.json.as_ref())?;
            // A prompt's arguments are always strings.
            args.extend(options.flags.into_iter().map(|flag| {
                let text = flag.value.unwrap_or_else(|| "true".to_owned());
                (flag.name, Value::String(text))
            }));
            let args = Json::from_value(&Value::Object(args));
            let ask = Ask::Prompt { server, name, args };
            Ok(CommandOutput::Json {
                json: HostConnection::open()?.ask(ask)?,
                is_pretty: options.is_pretty,
            })
        }
        McpRequest::Call { target, options } => {
            let args = read_json(options.json.as_ref())?;
            let mut connection = HostConnection::open()?;
            let ask = build_call(&mut connection, target, &options, args);
            Ok(CommandOutput::Json { json: connection.ask(ask)?, is_pretty: options.is_pretty })
        }
    }
}

/// Builds the call, with flag values converted to the types in the tool's schema.
fn build_call(
    connection: &mut HostConnection,
    target: Target,
    options: &CallOptions,
    mut args: Map<String, Value>,
) -> Ask {
    // If the tool is unknown, the call itself reports that.
    let tool = if flag_values::needs_schema(&options.flags) {
        connection
            .ask(Ask::Schema { name: target.name() })
            .ok()
            .and_then(|tool| tool.to_value().ok())
    } else {
        None
    };
    let schema = tool.as_ref().and_then(|tool| tool.get("inputSchema"));
    args.extend(flag_values::convert_flags(&options.flags, schema));
    let args = Json::from_value(&Value::Object(args));
    match target {
        Target::Pair { server, tool } => Ask::Tool { server, tool, args },
        Target::Joined(name) => Ask::Named { name, args },
    }
}

fn read_image(file: &str) -> Result<Image, McpCommandError> {
    let wrong = |why: String| McpCommandError::Usage(format!("{file}: {why}"));
    let found = std::fs::metadata(file).map_err(|err| wrong(err.to_string()))?;
    if found.len() > MAX_IMAGE_BYTES {
        return Err(wrong(format!("{} bytes; at most {MAX_IMAGE_BYTES}", found.len())));
    }
    let bytes = std::fs::read(file).map_err(|err| wrong(err.to_string()))?;
    let mime = ImageType::of(&bytes)
        .filter(|mime| !mime.is_audio())
        .ok_or_else(|| wrong("not an image; use PNG, JPEG, GIF or WebP".to_owned()))?;
    Ok(Image { mime, base64: BASE64.encode(bytes) })
}

fn read_json(source: Option<&JsonSource>) -> Result<Map<String, Value>, McpCommandError> {
    let text = match source {
        None => return Ok(Map::new()),
        Some(JsonSource::Text(text)) => text.clone(),
        Some(JsonSource::Stdin) => {
            let mut text = String::new();
            let limit = u64::try_from(MAX_FRAME_BYTES).unwrap_or(u64::MAX);
            let read = io::stdin().take(limit).read_to_string(&mut text);
            read.map_err(|err| McpCommandError::Usage(format!("standard input: {err}")))?;
            text
        }
    };
    serde_json::from_str(&text).map_err(|err| {
        McpCommandError::Usage(format!("--json takes one JSON object, like '{{\"id\": 1}}': {err}"))
    })
}

/// Returns `server.tool` for each tool that was found.
fn tool_names(found: &Json) -> Json {
    let tools = found.to_value().unwrap_or_default();
    let name = |tool: &Value| {
        let part = |key: &str| tool.get(key)?.as_str().map(str::to_owned);
        Some(Value::String(format!("{}.{}", part("server")?, part("tool")?)))
    };
    let names = tools.as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(name).collect();
    Json::from_value(&Value::Array(names))
}

fn code_name(error: &CallError) -> String {
    let name = serde_json::to_value(error.code).ok();
    name.as_ref().and_then(Value::as_str).unwrap_or("ERROR").to_owned()
}

impl CommandOutput {
    /// Renders strings as they are, everything else as JSON.
    fn text(self) -> String {
        let mut text = match self {
            CommandOutput::Nothing => return String::new(),
            CommandOutput::Text(text) => text,
            CommandOutput::Json { json, is_pretty } => match json.to_value() {
                Ok(Value::String(text)) => text,
                Ok(value) if is_pretty => format!("{value:#}"),
                Ok(value) => value.to_string(),
                // Nested too deeply to be parsed.
                Err(_) => json.text().to_owned(),
            },
        };
        text.push('\n');
        text
    }
}

/// A connection from this process to the host.
struct HostConnection {
    socket: UnixStream,
    next_id: u32,
}

impl HostConnection {
    fn open() -> Result<HostConnection, McpCommandError> {
        let socket = connect_to_broker().map_err(|_| McpCommandError::Outside)?;
        Ok(HostConnection { socket, next_id: 1 })
    }

    fn ask(&mut self, ask: Ask) -> Result<Json, McpCommandError> {
        let id = self.next_id;
        self.next_id += 1;
        let frame = FromGuest::Ask { id, ask }.encode();
        let frame = frame.map_err(|err| McpCommandError::Usage(err.to_string()))?;
        self.socket.write_all(&frame)?;
        let answer = self.read()?;
        if answer.id != id {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        answer.result.map_err(McpCommandError::Refused)
    }

    /// Sends an image. The host checks it, and reports a rejected one with the result.
    fn show(&mut self, image: Image) -> Result<(), McpCommandError> {
        let frame = FromGuest::Image(image).encode();
        let frame = frame.map_err(|err| McpCommandError::Usage(err.to_string()))?;
        Ok(self.socket.write_all(&frame)?)
    }

    fn read(&mut self) -> io::Result<AskAnswer> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        let mut header = [0; FRAME_HEADER_BYTES];
        self.socket.read_exact(&mut header)?;
        let mut body = vec![0; frame_length(header).map_err(invalid)?];
        self.socket.read_exact(&mut body)?;
        match ToGuest::decode(&body).map_err(invalid)? {
            ToGuest::Answer(answer) => Ok(answer),
            ToGuest::Start(_) | ToGuest::Cell(_) | ToGuest::Interrupt => {
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }
}

#[cfg(test)]
mod tests;
