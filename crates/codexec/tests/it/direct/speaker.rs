//! A client of either era.

use serde_json::{Value, json};

use super::scripted;
use crate::support::Client;

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// A client of one era that can be asked what `capabilities` say.
pub(crate) struct Speaker {
    pub(crate) client: Client,
    era: Era,
    capabilities: Value,
}

impl Speaker {
    pub(crate) fn start(servers: &Value, era: Era, capabilities: Value, toolset: &str) -> Speaker {
        let mut client = Client::raw(servers, |command| {
            command.args(["--toolset", toolset]);
        });
        if era == Era::Legacy {
            let hello = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": {"name": "it", "version": "0"},
            });
            client.request("initialize", &hello);
            client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        Speaker { client, era, capabilities }
    }

    pub(crate) fn scripted(era: Era, capabilities: Value) -> Speaker {
        Speaker::start(&json!({"s": scripted()}), era, capabilities, "direct")
    }

    pub(crate) fn with_meta(&self, mut params: Value, token: Option<&str>) -> Value {
        let mut meta = json!({});
        if self.era == Era::Modern {
            meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "0"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        if let Some(token) = token {
            meta["progressToken"] = json!(token);
        }
        params["_meta"] = meta;
        params
    }

    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        let params = self.with_meta(params, None);
        self.client.send(method, &params)
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.client.wait(id)
    }

    #[expect(clippy::needless_pass_by_value, reason = "so that a call is written in place")]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(reply["error"].is_null(), "{reply}");
        reply["result"].clone()
    }

    pub(crate) fn names(&mut self) -> Vec<String> {
        let list = self.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// The next message with this method.
    pub(crate) fn next(&mut self, method: &str) -> Value {
        let mut others = Vec::new();
        loop {
            let message = self.client.next_message();
            if message["method"] == method {
                self.client.others.extend(others);
                return message;
            }
            others.push(message);
        }
    }

    /// What a call gives whose question is answered like this, and the question.
    pub(crate) fn call_and_answer(
        &mut self,
        tool: &str,
        arguments: &Value,
        answer: &Value,
    ) -> (Value, Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let id = self.send("tools/call", params.clone());
        if self.era == Era::Legacy {
            let question = self.next("elicitation/create");
            let answered = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
            self.client.write(&answered);
            return (self.client.wait(id)["result"].clone(), question["params"].clone());
        }
        let asked = self.client.wait(id)["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let requests = asked["inputRequests"].as_object().expect("questions");
        let (key, question) = requests.iter().next().expect("one question");
        assert_eq!(question["method"], "elicitation/create");
        let mut again = params;
        again["inputResponses"] = json!({key: answer});
        again["requestState"] = asked["requestState"].clone();
        (self.request("tools/call", again)["result"].clone(), question["params"].clone())
    }
}
