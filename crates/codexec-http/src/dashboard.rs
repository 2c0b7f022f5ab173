//! The dashboard's page, style and scripts, embedded in the binary. They contain no data, so they
//! need no token; the scripts call `/api/v1` with the token that the user enters.

use std::sync::LazyLock;

use bytes::Bytes;
use codexec_server::mcp::HttpBody;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use sha2::{Digest as _, Sha256};

/// THREAT[WEB-1]: the browser runs and loads only files of this server, sends data only to it,
/// refuses to turn text into HTML, and shows the page in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A file of the dashboard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asset {
    /// The path below `dashboard/` in the source, and below `/assets/` for browsers.
    name: &'static str,
    content: &'static [u8],
}

macro_rules! embed {
    ($($name:literal,)*) => {
        &[$(Asset { name: $name, content: include_bytes!(concat!("../dashboard/", $name)) },)*]
    };
}

const PAGE: &str = "index.html";

static ASSETS: &[Asset] = embed![
    "index.html",
    "style.css",
    "main.js",
    "api.js",
    "completion.js",
    "diff.js",
    "events.js",
    "format.js",
    "highlight.js",
    "output.js",
    "parts.js",
    "shell.js",
    "sign_in.js",
    "text.js",
    "view.js",
    "icon.svg",
    "pages/approvals.js",
    "pages/execution.js",
    "pages/history.js",
    "pages/now.js",
    "pages/run.js",
    "pages/scripts.js",
    "pages/servers.js",
    "pages/sessions.js",
    "vendor/LICENSES.txt",
    "vendor/hooks.js",
    "vendor/htm.js",
    "vendor/preact.js",
];

/// Returns the file at a path, if a request with this method may get one.
pub(crate) fn find(method: &Method, path: &str) -> Option<&'static Asset> {
    let name = match path {
        "/" => PAGE,
        path => path.strip_prefix("/assets/")?,
    };
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    ASSETS.iter().find(|asset| is_read && asset.name == name)
}

impl Asset {
    /// Returns the file, or only its head if the browser has this version.
    pub(crate) fn answer(&self, head: &Parts) -> Response<HttpBody> {
        let tag = self.tag();
        let is_known = has_tag(&head.headers, tag);
        let content = if is_known { Bytes::new() } else { Bytes::from_static(self.content) };
        let mut response = Response::new(Full::new(content).boxed_unsync());
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type()));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        // The browser asks each time, so that a new codexec never meets an old script.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(ETAG, tag.clone());
        response
    }

    fn content_type(&self) -> &'static str {
        match self.name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/plain; charset=utf-8",
        }
    }

    fn tag(&self) -> &'static HeaderValue {
        static EMPTY: HeaderValue = HeaderValue::from_static("\"\"");
        static TAGS: LazyLock<Vec<(&str, HeaderValue)>> = LazyLock::new(|| {
            ASSETS.iter().map(|asset| (asset.name, make_tag(asset.content))).collect()
        });
        TAGS.iter().find(|(name, _)| *name == self.name).map_or(&EMPTY, |(_, tag)| tag)
    }
}

fn make_tag(content: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(content);
    let hex: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{hex}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

fn has_tag(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let listed = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = listed.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|known| known.trim_start_matches("W/").as_bytes() == tag.as_bytes())
}

#[cfg(test)]
mod tests;
