//! The command `mcp` in a Bash guest: one question to the host, over a line of its own.

mod typed;
mod usage;
mod wish;

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use codexec_sandbox::open_line;
use codexec_types::{
    Answer, Ask, CallError, FRAME_HEADER_BYTES, FromGuest, Image, ImageType, Json, MAX_FRAME_BYTES,
    ToGuest, frame_length,
};
use serde_json::{Map, Value};

use usage::USAGE;
use wish::{Given, JsonSource, Target, Wish};

/// What the host takes of one.
const MAX_PICTURE_BYTES: u64 = 5 << 20;

/// Why there is nothing on standard output.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}; see mcp --help")]
    Usage(String),
    #[error("this command works only inside codexec's bash")]
    Outside,
    #[error("{}: {}", code_name(.0), .0.message)]
    Refused(CallError),
    #[error("the host does not answer: {0}; at most 64 of these commands run at once")]
    Line(#[from] io::Error),
}

/// What to print.
enum Output {
    Nothing,
    Text(String),
    Json { json: Json, is_pretty: bool },
}

/// Does what the arguments say, and gives the exit code.
pub(crate) fn run(arguments: Vec<std::ffi::OsString>) -> i32 {
    match answer(arguments) {
        Ok(output) => {
            let text = output.text();
            // Who reads this may have gone: `mcp tools | head -c 9`.
            let _ = io::stdout().write_all(text.as_bytes());
            0
        }
        Err(failure) => {
            let _ = writeln!(io::stderr(), "mcp: {failure}");
            match failure {
                Failure::Usage(_) | Failure::Outside => 2,
                Failure::Refused(_) | Failure::Line(_) => 1,
            }
        }
    }
}

fn answer(arguments: Vec<std::ffi::OsString>) -> Result<Output, Failure> {
    let not_text = |_| Failure::Usage("an argument is not UTF-8".to_owned());
    let arguments: Result<Vec<String>, _> =
        arguments.into_iter().map(std::ffi::OsString::into_string).collect();
    match wish::parse(arguments.map_err(not_text)?).map_err(Failure::Usage)? {
        Wish::Usage => Ok(Output::Text(USAGE.trim_end().to_owned())),
        Wish::Ask { ask, is_pretty } => {
            Ok(Output::Json { json: Line::open()?.ask(ask)?, is_pretty })
        }
        Wish::AllTools { is_pretty } => {
            let found = Line::open()?.ask(Ask::Discover { words: Vec::new() })?;
            Ok(Output::Json { json: names(&found), is_pretty })
        }
        Wish::Show { files } => {
            let mut line = Line::open()?;
            for file in &files {
                line.show(picture(file)?)?;
            }
            Ok(Output::Nothing)
        }
        Wish::Prompt { server, name, given } => {
            let mut args = read_json(given.json.as_ref())?;
            // A prompt's arguments are texts, all of them.
            args.extend(given.flags.into_iter().map(|flag| {
                let text = flag.value.unwrap_or_else(|| "true".to_owned());
                (flag.name, Value::String(text))
            }));
            let args = Json::from_value(&Value::Object(args));
            let ask = Ask::Prompt { server, name, args };
            Ok(Output::Json { json: Line::open()?.ask(ask)?, is_pretty: given.is_pretty })
        }
        Wish::Call { target, given } => {
            let args = read_json(given.json.as_ref())?;
            let mut line = Line::open()?;
            let ask = call(&mut line, target, &given, args);
            Ok(Output::Json { json: line.ask(ask)?, is_pretty: given.is_pretty })
        }
    }
}

/// The call that is meant, with every flag of the type that the tool wants.
fn call(line: &mut Line, target: Target, given: &Given, mut args: Map<String, Value>) -> Ask {
    // A tool that is not there is told of by the call itself.
    let tool = if typed::needs_schema(&given.flags) {
        line.ask(Ask::Schema { name: target.name() }).ok().and_then(|tool| tool.to_value().ok())
    } else {
        None
    };
    let schema = tool.as_ref().and_then(|tool| tool.get("inputSchema"));
    args.extend(typed::arguments(&given.flags, schema));
    let args = Json::from_value(&Value::Object(args));
    match target {
        Target::Pair { server, tool } => Ask::Tool { server, tool, args },
        Target::Joined(name) => Ask::Named { name, args },
    }
}

fn picture(file: &str) -> Result<Image, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{file}: {why}"));
    let found = std::fs::metadata(file).map_err(|err| wrong(err.to_string()))?;
    if found.len() > MAX_PICTURE_BYTES {
        return Err(wrong(format!("it has {} bytes; at most {MAX_PICTURE_BYTES}", found.len())));
    }
    let bytes = std::fs::read(file).map_err(|err| wrong(err.to_string()))?;
    let mime = ImageType::of(&bytes)
        .ok_or_else(|| wrong("it is no picture; PNG, JPEG, GIF and WebP are".to_owned()))?;
    Ok(Image { mime, base64: BASE64.encode(bytes) })
}

fn read_json(source: Option<&JsonSource>) -> Result<Map<String, Value>, Failure> {
    let text = match source {
        None => return Ok(Map::new()),
        Some(JsonSource::Text(text)) => text.clone(),
        Some(JsonSource::Stdin) => {
            let mut text = String::new();
            let limit = u64::try_from(MAX_FRAME_BYTES).unwrap_or(u64::MAX);
            let read = io::stdin().take(limit).read_to_string(&mut text);
            read.map_err(|err| Failure::Usage(format!("standard input: {err}")))?;
            text
        }
    };
    serde_json::from_str(&text).map_err(|err| {
        Failure::Usage(format!("--json takes one JSON object, like '{{\"id\": 1}}': {err}"))
    })
}

/// `server.tool` of each tool that was found.
fn names(found: &Json) -> Json {
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

impl Output {
    /// A text as it is; everything else as JSON.
    fn text(self) -> String {
        let mut text = match self {
            Output::Nothing => return String::new(),
            Output::Text(text) => text,
            Output::Json { json, is_pretty } => match json.to_value() {
                Ok(Value::String(text)) => text,
                Ok(value) if is_pretty => format!("{value:#}"),
                Ok(value) => value.to_string(),
                // Nested too deep to be taken apart.
                Err(_) => json.text().to_owned(),
            },
        };
        text.push('\n');
        text
    }
}

struct Line {
    socket: UnixStream,
    next_id: u32,
}

impl Line {
    fn open() -> Result<Line, Failure> {
        let socket = open_line().map_err(|_| Failure::Outside)?;
        Ok(Line { socket, next_id: 1 })
    }

    fn ask(&mut self, ask: Ask) -> Result<Json, Failure> {
        let id = self.next_id;
        self.next_id += 1;
        let frame = FromGuest::Ask { id, ask }.encode();
        let frame = frame.map_err(|err| Failure::Usage(err.to_string()))?;
        self.socket.write_all(&frame)?;
        let answer = self.read()?;
        if answer.id != id {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        answer.result.map_err(Failure::Refused)
    }

    /// The host takes it as it is, or leaves it out and says so with the result.
    fn show(&mut self, image: Image) -> Result<(), Failure> {
        let frame = FromGuest::Image(image).encode();
        let frame = frame.map_err(|err| Failure::Usage(err.to_string()))?;
        Ok(self.socket.write_all(&frame)?)
    }

    fn read(&mut self) -> io::Result<Answer> {
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
