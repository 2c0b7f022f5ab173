//! What a row of the table is, and how a request finds its row.

use codexec_functions::{Argument, OwnFunction};
use futures::future::BoxFuture;
use http::Method;

use super::{Answer, ApiError, ApiRequest, percent};
use crate::error::HttpError;

/// A route: everything about it, and its handler.
pub(crate) struct Route {
    pub(crate) verb: Verb,
    /// Below `/api/v1`; `{name}` is one segment, and `{+name}` is the rest of the path.
    pub(crate) path: &'static str,
    /// The operation's id in the document, and the route's name in metrics.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) need: Need,
    /// The toolset that a token must allow, if its scopes name toolsets.
    pub(crate) toolset: &'static str,
    pub(crate) query: Input,
    pub(crate) body: Input,
    pub(crate) answers: &'static [Documented],
    /// Further statuses of errors, besides those that every route may have.
    pub(crate) errors: &'static [u16],
    pub(crate) handler: Handler,
}

pub(crate) type Handler = for<'a> fn(ApiRequest<'a>) -> BoxFuture<'a, Answer>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Delete,
}

/// The scopes that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Any token.
    Read,
    Write,
    ReadEveryone,
    WriteEveryone,
}

/// The fields of a query or of a body.
#[derive(Clone, Copy)]
pub(crate) enum Input {
    None,
    /// The arguments of an own function, without those that the path has, and further ones.
    Function(OwnFunction, &'static [&'static str], &'static [Argument]),
    Fields(&'static [Argument]),
    /// The same, but the handler parses the body, because its errors have another shape.
    Raw(&'static [Argument]),
}

/// A documented response: its status, media type, and the name of its schema.
#[derive(Clone, Copy)]
pub(crate) struct Documented {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    pub(crate) schema: Option<&'static str>,
}

pub(crate) const EVENTS: &str = "text/event-stream";
pub(crate) const JSON: &str = "application/json";

pub(crate) const fn json(status: u16, schema: &'static str) -> Documented {
    Documented { status, media_type: JSON, schema: Some(schema) }
}

/// A stream; the schema is that of one event.
pub(crate) const fn events() -> Documented {
    Documented { status: 200, media_type: EVENTS, schema: Some("Event") }
}

impl Verb {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Delete => "DELETE",
        }
    }

    /// Returns true if a request with this method is for the route. HEAD is GET without a body.
    fn is(self, method: &Method) -> bool {
        match self {
            Verb::Get => *method == Method::GET || *method == Method::HEAD,
            Verb::Post => *method == Method::POST,
            Verb::Delete => *method == Method::DELETE,
        }
    }
}

impl Input {
    pub(crate) fn arguments(&self) -> Vec<Argument> {
        match self {
            Input::None => Vec::new(),
            Input::Fields(fields) | Input::Raw(fields) => fields.to_vec(),
            Input::Function(function, without, more) => {
                let own = function.spec().arguments().copied();
                own.filter(|one| !without.contains(&one.name)).chain(more.iter().copied()).collect()
            }
        }
    }
}

impl Route {
    const fn new(
        (verb, need): (Verb, Need),
        path: &'static str,
        (id, summary): (&'static str, &'static str),
        answers: &'static [Documented],
        handler: Handler,
    ) -> Route {
        Route {
            verb,
            path,
            id,
            summary,
            need,
            toolset: "codexec",
            query: Input::None,
            body: Input::None,
            answers,
            errors: &[],
            handler,
        }
    }

    pub(crate) const fn get(
        path: &'static str,
        about: (&'static str, &'static str),
        answers: &'static [Documented],
        handler: Handler,
    ) -> Route {
        Route::new((Verb::Get, Need::Read), path, about, answers, handler)
    }

    pub(crate) const fn post(
        path: &'static str,
        about: (&'static str, &'static str),
        answers: &'static [Documented],
        handler: Handler,
    ) -> Route {
        Route::new((Verb::Post, Need::Write), path, about, answers, handler)
    }

    pub(crate) const fn delete(
        path: &'static str,
        about: (&'static str, &'static str),
        answers: &'static [Documented],
        handler: Handler,
    ) -> Route {
        Route::new((Verb::Delete, Need::Write), path, about, answers, handler)
    }

    pub(crate) const fn query(mut self, query: Input) -> Route {
        self.query = query;
        self
    }

    pub(crate) const fn body(mut self, body: Input) -> Route {
        self.body = body;
        self
    }

    pub(crate) const fn errors(mut self, errors: &'static [u16]) -> Route {
        self.errors = errors;
        self
    }

    pub(crate) const fn toolset(mut self, toolset: &'static str) -> Route {
        self.toolset = toolset;
        self
    }

    /// Sets another need, for a handler that checks the scope itself.
    pub(crate) const fn need(mut self, need: Need) -> Route {
        self.need = need;
        self
    }

    /// Lets only tokens use the route that see everyone's.
    pub(crate) const fn for_everyone(mut self) -> Route {
        self.need = match self.need {
            Need::Read | Need::ReadEveryone => Need::ReadEveryone,
            Need::Write | Need::WriteEveryone => Need::WriteEveryone,
        };
        self
    }

    /// Returns the names of the path's parameters.
    pub(crate) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(parameter_name)
    }
}

fn parameter_name(segment: &'static str) -> Option<&'static str> {
    let name = segment.strip_prefix('{')?.strip_suffix('}')?;
    Some(name.strip_prefix('+').unwrap_or(name))
}

/// Finds the route of a request, and the values of its path.
pub(super) fn find<'a>(
    routes: &'a [Route],
    method: &Method,
    path: &str,
) -> Result<(&'a Route, Vec<String>), ApiError> {
    let mut allowed: Vec<&str> = Vec::new();
    for route in routes {
        let Some(values) = match_path(route.path, path) else { continue };
        if route.verb.is(method) {
            return Ok((route, values));
        }
        allowed.push(route.verb.name());
    }
    match allowed.as_slice() {
        [] => Err(HttpError::NotFound.into()),
        allowed => Err(HttpError::Method(allowed.join(", ")).into()),
    }
}

/// Returns the values of the path's parameters, if it matches. An empty value is none.
fn match_path(template: &str, path: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = path.split('/');
    for segment in template.split('/') {
        if segment.starts_with("{+") {
            let tail: Vec<&str> = rest.collect();
            let value = percent::decode(&tail.join("/"))?;
            return (!value.is_empty()).then(|| {
                values.push(value);
                values
            });
        }
        let written = rest.next()?;
        if segment.starts_with('{') {
            values.push(percent::decode(written).filter(|value| !value.is_empty())?);
        } else if segment != written {
            return None;
        }
    }
    rest.next().is_none().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_by_segments() {
        let matched = |template, path| match_path(template, path);
        assert_eq!(matched("/a/{x}", "/a/b%20c"), Some(vec!["b c".to_owned()]));
        assert_eq!(matched("/a/{x}", "/a/b/c"), None);
        assert_eq!(matched("/a/{x}", "/a/"), None);
        assert_eq!(matched("/a/{x}", "/a/%ff"), None);
        assert_eq!(matched("/a", "/a/"), None);
        assert_eq!(
            matched("/a/{x}/f/{+p}", "/a/1/f/d/e%2Ff"),
            Some(vec!["1".into(), "d/e/f".into()])
        );
        assert_eq!(matched("/a/{x}/f/{+p}", "/a/1/f/"), None);
    }
}
