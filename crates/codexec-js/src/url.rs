//! URLs as the WHATWG standard defines them, for the prelude's `URL`.

use url::{Url, quirks};

/// `href`, `origin`, then the parts in the order of the prelude's `URL`.
pub(crate) type UrlParts = Vec<String>;

pub(crate) fn parse(text: &str, base: Option<&str>) -> Option<UrlParts> {
    let base = match base {
        Some(base) => Some(Url::parse(base).ok()?),
        None => None,
    };
    Url::options().base_url(base.as_ref()).parse(text).ok().map(|url| parts(&url))
}

/// Returns the parts after `url.part = value`. An invalid value changes nothing.
pub(crate) fn set_part(href: &str, part: &str, value: &str) -> Option<UrlParts> {
    let mut url = Url::parse(href).ok()?;
    // The standard's setters ignore invalid values.
    let _fits = match part {
        "protocol" => quirks::set_protocol(&mut url, value).is_ok(),
        "username" => quirks::set_username(&mut url, value).is_ok(),
        "password" => quirks::set_password(&mut url, value).is_ok(),
        "host" => quirks::set_host(&mut url, value).is_ok(),
        "hostname" => quirks::set_hostname(&mut url, value).is_ok(),
        "port" => quirks::set_port(&mut url, value).is_ok(),
        "pathname" => {
            quirks::set_pathname(&mut url, value);
            true
        }
        "search" => {
            quirks::set_search(&mut url, value);
            true
        }
        "hash" => {
            quirks::set_hash(&mut url, value);
            true
        }
        _ => false,
    };
    Some(parts(&url))
}

fn parts(url: &Url) -> UrlParts {
    [
        quirks::href(url),
        &quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ]
    .map(str::to_owned)
    .to_vec()
}
