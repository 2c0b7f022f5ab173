//! The files that executions left.

use codexec_server::ArtifactError;
use codexec_types::ImageType;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::executions::load;
use super::{Answer, ApiError, ApiRequest, PREFIX, ok, percent};

pub(super) async fn list(request: ApiRequest<'_>) -> Answer {
    let record = load(&request).await?;
    let id = &record.summary.id;
    let files = request.app().records.list_artifacts(id).await;
    let items: Vec<Value> = files
        .iter()
        .map(|file| {
            let path = file.path.to_string_lossy();
            let url = format!("{PREFIX}/executions/{id}/artifacts/{}", percent::encode(&path));
            json!({"path": path, "bytes": file.bytes, "url": url})
        })
        .collect();
    ok(&json!({"items": items}))
}

/// Sends one file.
///
/// THREAT[HTTP-12]: the file may be a web page with scripts, so a browser saves it and never runs
/// it; only pictures are shown.
pub(super) async fn get(request: ApiRequest<'_>) -> Answer {
    let record = load(&request).await?;
    let path = request.path(1).to_owned();
    let bytes = request.app().records.read_artifact(&record.summary.id, &path).await;
    let bytes = bytes.map_err(|error| match error {
        ArtifactError::Missing => ApiError::not_found("the execution has no such file"),
        ArtifactError::TooLong { .. } => {
            ApiError::new(StatusCode::CONFLICT, "ARTIFACT_TOO_LONG", error.to_string())
        }
        ArtifactError::Unreadable(source) => {
            ApiError::from_code("STORE_UNAVAILABLE", &source.to_string())
        }
    })?;
    let image = ImageType::of(&bytes).filter(|kind| image_type(&path) == Some(*kind));
    let (kind, disposition) = match image {
        Some(kind) => (mime_name(kind), "inline".to_owned()),
        None => {
            let name = path.rsplit('/').next().unwrap_or_default();
            let name = percent::encode(name);
            ("application/octet-stream".to_owned(), format!("attachment; filename*=UTF-8''{name}"))
        }
    };
    let mut response = Response::new(Full::new(bytes.into()).boxed_unsync());
    let headers = response.headers_mut();
    headers
        .insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    if let (Ok(kind), Ok(disposition)) = (kind.parse(), disposition.parse()) {
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// Returns the type of a picture, by the end of its name.
pub(super) fn image_type(name: &str) -> Option<ImageType> {
    match name.rsplit_once('.')?.1 {
        "png" => Some(ImageType::Png),
        "jpg" | "jpeg" => Some(ImageType::Jpeg),
        "gif" => Some(ImageType::Gif),
        "webp" => Some(ImageType::Webp),
        _ => None,
    }
}

fn mime_name(kind: ImageType) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or("application/octet-stream").to_owned()
}
