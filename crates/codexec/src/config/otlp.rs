use codexec_telemetry::ExportSettings;

use super::{ConfigError, HostEnvironment, file};

const TRACES_PATH: &str = "/v1/traces";

/// Returns where traces go. OpenTelemetry's own variables win over the file.
pub(super) fn otlp(
    file: &file::OtlpSection,
    host: &HostEnvironment,
) -> Result<Option<ExportSettings>, ConfigError> {
    let variable = |name: &str| (host.variable)(name).filter(|value| !value.is_empty());
    if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT").or_else(|| file.endpoint.clone());
    let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let Some(endpoint) = endpoint.or_else(|| Some(with_path(&base?))) else { return Ok(None) };
    let mut headers = Vec::new();
    for (name, value) in &file.headers {
        let value = value.strip_prefix("env:").and_then(variable);
        headers.push((name.clone(), value.ok_or_else(|| ConfigError::OtlpHeader(name.clone()))?));
    }
    let listed = variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    for (name, value) in listed.split(',').filter_map(|pair| pair.split_once('=')) {
        headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(Some(ExportSettings { endpoint, headers, version: env!("CARGO_PKG_VERSION") }))
}

fn with_path(base: &str) -> String {
    let base = base.trim_end_matches('/');
    match base.ends_with(TRACES_PATH) {
        true => base.to_owned(),
        false => format!("{base}{TRACES_PATH}"),
    }
}
