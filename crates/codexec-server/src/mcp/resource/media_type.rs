use std::ffi::OsStr;
use std::path::Path;

/// The media type that a file's extension indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MediaType {
    /// `None` for an unknown extension.
    pub(super) mime: Option<&'static str>,
    pub(super) may_be_text: bool,
}

impl Default for MediaType {
    fn default() -> MediaType {
        MediaType { mime: None, may_be_text: true }
    }
}

pub(super) fn from_name(name: &OsStr) -> MediaType {
    let ending = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    let (mime, may_be_text) = match ending.to_ascii_lowercase().as_str() {
        "png" => ("image/png", false),
        "jpg" | "jpeg" => ("image/jpeg", false),
        "gif" => ("image/gif", false),
        "webp" => ("image/webp", false),
        "pdf" => ("application/pdf", false),
        "zip" => ("application/zip", false),
        "gz" | "tgz" => ("application/gzip", false),
        "xlsx" => ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", false),
        "parquet" => ("application/vnd.apache.parquet", false),
        "svg" => ("image/svg+xml", true),
        "csv" => ("text/csv", true),
        "tsv" => ("text/tab-separated-values", true),
        "json" | "ipynb" => ("application/json", true),
        "html" | "htm" => ("text/html", true),
        "md" => ("text/markdown", true),
        "xml" => ("application/xml", true),
        "css" => ("text/css", true),
        "js" | "mjs" => ("text/javascript", true),
        "txt" | "log" | "py" | "sh" | "ts" | "toml" | "yaml" | "yml" => ("text/plain", true),
        _ => return MediaType::default(),
    };
    MediaType { mime: Some(mime), may_be_text }
}
