//! The cost of listing every tool to an agent.

use codexec_types::ToolFilter;
use serde_json::json;

use super::Gateway;
use crate::catalogue::Catalogue;

/// One server's share of the catalogue.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ServerCost {
    pub server: String,
    pub tools: usize,
    /// The length of all its tools as a model gets them: name, description and input schema, in
    /// JSON.
    pub characters: usize,
}

impl Gateway {
    /// Returns the costs in configured order, including servers without tools. Starts servers
    /// whose tools are not known.
    pub async fn measure_costs(&self, allowed: &ToolFilter) -> Vec<ServerCost> {
        let (catalogue, _) = self.gather_all_lists(allowed).await;
        self.costs_in(&catalogue, allowed)
    }

    /// Returns the costs of the tools that are known. Looking at servers does not start them.
    pub async fn measure_known_costs(&self, allowed: &ToolFilter) -> Vec<ServerCost> {
        let catalogue = self.catalogue().await;
        self.costs_in(&catalogue, allowed)
    }

    fn costs_in(&self, catalogue: &Catalogue, allowed: &ToolFilter) -> Vec<ServerCost> {
        let names = self.server_names();
        let visible = names.iter().filter(|name| allowed.allows_server(name.as_str()));
        visible
            .map(|name| {
                let mut cost = ServerCost { server: name.to_string(), tools: 0, characters: 0 };
                for entry in catalogue.all(allowed).filter(|entry| entry.server == *name) {
                    let definition = json!({
                        "name": entry.tool.name,
                        "description": entry.tool.description,
                        "input_schema": entry.tool.input_schema(),
                    });
                    cost.tools += 1;
                    cost.characters += definition.to_string().chars().count();
                }
                cost
            })
            .collect()
    }
}
