//! Content blocks of tools in the value that code returns.

use codexec_types::{Image, ImageType, Json};
use serde_json::{Map, Value};

use super::Images;

/// Returns the value without its image and audio data, or `None` if it has none.
pub(super) fn without_blocks(value: &Json, images: &mut Images) -> Option<Json> {
    let text = value.text();
    // Most values have no blocks, and are not parsed.
    let is_candidate =
        ["\"image\"", "\"audio\"", "\"blob\""].iter().any(|word| text.contains(word));
    let mut parsed: Value = is_candidate.then(|| serde_json::from_str(text).ok())??;
    let count = replace_blocks(&mut parsed, images);
    (count > 0).then(|| Json::parse(parsed.to_string()).ok())?
}

/// Returns the number of replaced blocks. The depth is limited by the parser.
fn replace_blocks(value: &mut Value, images: &mut Images) -> usize {
    match value {
        Value::Array(items) => items.iter_mut().map(|item| replace_blocks(item, images)).sum(),
        Value::Object(fields) => match data_key(fields) {
            Some(key) => replace_data(fields, key, images),
            None => fields.values_mut().map(|field| replace_blocks(field, images)).sum(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Returns the field with the data of a content block: of an image, of audio, or of a resource.
fn data_key(fields: &Map<String, Value>) -> Option<&'static str> {
    fields.get("mimeType")?.as_str()?;
    let key = match fields.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => "data",
        None if fields.get("uri").is_some_and(Value::is_string) => "blob",
        Some(_) | None => return None,
    };
    fields.get(key)?.as_str().map(|_| key)
}

fn replace_data(fields: &mut Map<String, Value>, key: &str, images: &mut Images) -> usize {
    let mime = fields.get("mimeType").and_then(Value::as_str).and_then(ImageType::parse);
    let Some(Value::String(data)) = fields.get_mut(key) else { return 0 };
    let base64 = std::mem::take(data);
    let bytes = base64.len();
    let before = images.shown.len();
    if let Some(mime) = mime {
        images.push(Image { mime, base64 });
    }
    let kind = if mime.is_some_and(ImageType::is_audio) { "audio" } else { "image" };
    *data = match images.shown.len() {
        number if number > before => format!("[{kind} {number} of this reply]"),
        _ => format!("[{bytes} characters of base64, not shown]"),
    };
    1
}

#[cfg(test)]
mod tests;
