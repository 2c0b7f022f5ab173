//! The seam between the MCP edge and the tools that it offers.

use std::sync::Arc;

use codexec_types::ServerName;
use rmcp::model::{JsonObject, ReadResourceResponse, Resource, Tool};

use super::pending_call::PendingCall;
use super::tool_request::ToolRequest;
use super::{CompactTools, instructions};

/// A set of tools under one name. A client sees one set, or several joined by [`Toolsets`].
pub trait Toolset: Send + Sync {
    /// Returns the name by which users choose the set.
    fn name(&self) -> &'static str;

    /// Explains the tools to an agent: whole lines, or nothing if the definitions say enough.
    fn instructions(&self) -> &'static str {
        ""
    }

    /// Returns the definitions of the tools that never change while the server runs.
    fn tools(&self) -> Vec<Tool>;

    /// Returns the kind of tools that the set has besides [`Toolset::tools`].
    fn changing_tools(&self) -> ChangingTools {
        ChangingTools::None
    }

    /// Returns true if a call of `tool` is for this set. Older names count, although they are not
    /// listed.
    fn has_tool(&self, tool: &str) -> bool;

    /// Starts a call of one of the set's tools.
    fn begin(&self, tool: &str, arguments: JsonObject, request: &ToolRequest<'_>) -> PendingCall;

    /// Returns the resources that belong to the tools.
    fn resources(&self) -> Vec<Resource> {
        Vec::new()
    }

    /// Reads one of these resources; `None` means that the set does not have it.
    fn read_resource(&self, _uri: &str) -> Option<ReadResourceResponse> {
        None
    }
}

/// Tools that come and go while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangingTools {
    None,
    /// The scripts that are exposed as tools.
    Scripts,
    /// Every tool of the user's MCP servers.
    Upstreams,
}

/// The toolsets of one client, joined: of two tools with the same name, the first one wins.
#[derive(Clone)]
pub struct Toolsets(Vec<Arc<dyn Toolset>>);

impl Toolsets {
    /// Joins toolsets, in order of precedence.
    pub fn new(sets: Vec<Arc<dyn Toolset>>) -> Toolsets {
        Toolsets(sets)
    }

    /// Returns the definitions of the tools that never change.
    pub fn tools(&self) -> Vec<Tool> {
        let mut all: Vec<Tool> = Vec::new();
        for set in &self.0 {
            let is_new = |tool: &Tool| all.iter().all(|other| other.name != tool.name);
            let new: Vec<Tool> = set.tools().into_iter().filter(is_new).collect();
            all.extend(new);
        }
        all
    }

    /// Returns what an agent is told about the tools and the servers behind them.
    pub fn instructions(&self, servers: &[ServerName]) -> String {
        // Clients cut long texts, and the compact tools need the most explanation.
        let (compact, others): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|set| set.name() == CompactTools::NAME);
        let about = compact.into_iter().chain(others).map(|set| set.instructions()).collect();
        instructions::with_servers(about, servers)
    }

    pub(super) fn find(&self, tool: &str) -> Option<&dyn Toolset> {
        self.0.iter().find(|set| set.has_tool(tool)).map(Arc::as_ref)
    }

    /// Returns true if the tool is known to change nothing. Tools of others are not.
    ///
    /// THREAT[HTTP-4]: a token with the scope `read` calls no other tools.
    pub(super) fn only_reads(&self, tool: &str) -> bool {
        let tools = self.find(tool).map(Toolset::tools).unwrap_or_default();
        let definition = tools.into_iter().find(|definition| definition.name == tool);
        let annotations = definition.and_then(|definition| definition.annotations);
        annotations.and_then(|hints| hints.read_only_hint).unwrap_or(false)
    }

    pub(super) fn has(&self, changing: ChangingTools) -> bool {
        self.0.iter().any(|set| set.changing_tools() == changing)
    }

    /// Returns true if the list of tools may change while the server runs.
    pub(super) fn may_change(&self) -> bool {
        self.0.iter().any(|set| set.changing_tools() != ChangingTools::None)
    }

    /// Returns true if there are no tools but the compact ones.
    pub(super) fn is_compact(&self) -> bool {
        self.0.iter().all(|set| set.name() == CompactTools::NAME)
    }

    pub(super) fn resources(&self) -> Vec<Resource> {
        self.0.iter().flat_map(|set| set.resources()).collect()
    }

    pub(super) fn read_resource(&self, uri: &str) -> Option<ReadResourceResponse> {
        self.0.iter().find_map(|set| set.read_resource(uri))
    }
}
