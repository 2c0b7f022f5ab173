//! Every request that a login makes: to places that a hostile server may have named.

use std::time::Duration;

use reqwest::Client;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use url::Url;

use crate::{Settings, web};

const REQUEST: Duration = Duration::from_secs(20);
const ANSWER_BYTES: usize = 512 << 10;

pub(super) struct LoginHttp {
    client: Client,
    server: Url,
}

impl LoginHttp {
    pub(super) fn new(settings: &Settings, server: &Url) -> reqwest::Result<LoginHttp> {
        let client = web::distant_client(settings, server)?;
        Ok(LoginHttp { client, server: server.clone() })
    }
}

impl OAuthHttpClient for LoginHttp {
    /// THREAT[REM-3]: over TLS, to public places, bounded, and no redirect to another origin.
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let mut request = reqwest::Request::try_from(request.request)?;
            *request.timeout_mut() = Some(REQUEST);
            if !web::may_send_to(&self.server, request.url()) {
                let place = request.url().origin().ascii_serialization();
                return Err(format!("{place} is no place that it may send us to").into());
            }
            let response = self.client.execute(request).await.map_err(|error| web::why(&error))?;
            let mut answer = http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            Ok(answer.body(web::body(response, ANSWER_BYTES).await?)?)
        })
    }
}
