//! The HTTP client for a login's requests, whose URLs may come from a hostile server.

use std::time::Duration;

use reqwest::Client;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use url::Url;

use crate::{GatewaySettings, web};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const ANSWER_BYTES: usize = 512 << 10;

pub(super) struct LoginHttp {
    client: Client,
    server: Url,
}

impl LoginHttp {
    pub(super) fn new(settings: &GatewaySettings, server: &Url) -> reqwest::Result<LoginHttp> {
        let client = web::build_restricted_client(settings, server)?;
        Ok(LoginHttp { client, server: server.clone() })
    }
}

impl OAuthHttpClient for LoginHttp {
    /// THREAT[REM-3]: only over TLS, to public addresses, with size and time limits, and without
    /// redirects to another origin.
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let mut request = reqwest::Request::try_from(request.request)?;
            *request.timeout_mut() = Some(REQUEST_TIMEOUT);
            if !web::is_allowed_target(&self.server, request.url()) {
                let origin = request.url().origin().ascii_serialization();
                return Err(format!("the server must not send us to {origin}").into());
            }
            let response =
                self.client.execute(request).await.map_err(|error| web::describe_error(&error))?;
            let mut answer = http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            Ok(answer.body(web::read_body(response, ANSWER_BYTES).await?)?)
        })
    }
}
