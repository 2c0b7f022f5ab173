//! Questions of servers, and who answers them.

use serde_json::{Value, json};

use super::speaker::Era::{Legacy, Modern};
use super::speaker::Speaker;
use super::{can_ask, scripted};

fn form() -> Value {
    json!({"message": "Your name?", "requestedSchema": {
        "type": "object", "properties": {"name": {"type": "string", "title": "Name"}},
        "required": ["name"]}})
}

/// As a client sees it.
fn seen(mut params: Value) -> Value {
    let object = params.as_object_mut().expect("an object");
    let meta = object.remove("_meta").unwrap_or_default();
    assert_eq!(meta["codexec/server"], "s");
    // Present or left out, it means the same.
    object.remove("mode").inspect(|mode| assert_eq!(mode, "form"));
    params
}

#[test]
fn questions_reach_the_human_and_answers_the_server() {
    for era in [Legacy, Modern] {
        let mut us = Speaker::scripted(era, can_ask());
        us.names();
        let accept = json!({"action": "accept", "content": {"name": "Ada"}});
        let (result, question) = us.call_and_answer("s__ask", &json!({"params": form()}), &accept);
        assert_eq!(result["structuredContent"], accept, "{era:?} {result}");
        assert_eq!(seen(question), form());
        // A server that asks by its result, and is called again.
        let (result, question) =
            us.call_and_answer("s__rounds", &json!({"params": form()}), &accept);
        let expected = json!({"answers": {"who": accept}, "state": "s1"});
        assert_eq!(result["structuredContent"], expected, "{era:?} {result}");
        assert_eq!(seen(question), form());
        // One that never has enough.
        let result = us.call("s__rounds", json!({"for_ever": true}));
        let sorry = "UPSTREAM_ERROR: server \"s\": it asked for input more than 10 times";
        assert_eq!(result["content"][0]["text"], sorry);
        let decline = json!({"action": "decline"});
        let (result, _) = us.call_and_answer("s__ask", &json!({"params": form()}), &decline);
        assert_eq!(result["structuredContent"], decline);
        let url = json!({"mode": "url", "message": "Log in", "url": "https://a.example/",
            "elicitationId": "e1"});
        let (_, question) = us.call_and_answer("s__ask", &json!({"params": url}), &decline);
        assert_eq!(question["url"], "https://a.example/");
    }
}

#[test]
fn who_cannot_be_asked_declines() {
    for (era, capabilities) in
        [(Legacy, json!({})), (Modern, json!({})), (Legacy, json!({"elicitation": {"url": {}}}))]
    {
        let mut us = Speaker::scripted(era, capabilities);
        us.names();
        let result = us.call("s__ask", json!({"params": form()}));
        assert_eq!(result["structuredContent"], json!({"action": "decline"}), "{era:?}");
    }
    let mut us = Speaker::scripted(Legacy, json!({}));
    let result = us.call("s__rounds", json!({"params": form()}));
    let sorry = "UPSTREAM_ERROR: s.rounds: it asks for input, and this client cannot be asked";
    assert_eq!(result["content"][0]["text"], sorry);
}

#[test]
fn ask_2_an_answer_goes_only_to_the_call_that_asked() {
    let mut us = Speaker::scripted(Modern, can_ask());
    us.names();
    let call = json!({"name": "s__ask", "arguments": {"params": form()}});
    let asked = us.request("tools/call", call.clone())["result"].clone();
    let state = &asked["requestState"];
    let answers = json!({"question": {"action": "accept", "content": {"name": "Eve"}}});
    let check = |us: &mut Speaker, name: &str, arguments: &Value, state: &Value| {
        let params = json!({"name": name, "arguments": arguments, "inputResponses": answers,
            "requestState": state});
        let reply = us.request("tools/call", params);
        assert_eq!(reply["error"]["code"], -32_602, "{reply}");
    };
    check(&mut us, "s__rounds", &call["arguments"], state);
    check(&mut us, "s__ask", &json!({}), state);
    check(&mut us, "s__ask", &call["arguments"], &json!("0".repeat(32)));
    let mut again = call;
    (again["inputResponses"], again["requestState"]) = (answers.clone(), state.clone());
    let result = us.request("tools/call", again.clone())["result"].clone();
    assert_eq!(result["structuredContent"], answers["question"]);
    let twice = us.request("tools/call", again);
    assert_eq!(twice["error"]["code"], -32_602, "{twice}");
}

#[test]
fn code_that_calls_a_tool_has_its_clients_human_behind_it() {
    for era in [Legacy, Modern] {
        let mut us = Speaker::start(&json!({"s": scripted()}), era, can_ask(), "compact");
        let code = "return await tools.s.ask(input);";
        let arguments = json!({
            "language": "typescript", "code": code, "input": {"params": form()},
        });
        let accept = json!({"action": "accept", "content": {"name": "Ada"}});
        let (result, question) = us.call_and_answer("execute_code", &arguments, &accept);
        assert_eq!(result["content"][0]["text"], accept.to_string(), "{era:?} {result}");
        assert_eq!(question["message"], "s asks: Your name?");
    }
}

/// The code has less time than the human takes.
#[test]
fn the_clock_of_code_stands_still_while_a_human_is_asked() {
    let mut us = Speaker::start(&json!({"s": scripted()}), Legacy, can_ask(), "compact");
    // Started before, so that the time goes to nothing else.
    us.call(
        "execute_code",
        json!({
            "language": "typescript", "code": "await tools.s.give({result: {content: []}})",
        }),
    );
    let arguments = json!({
        "language": "typescript",
        "code": "return await tools.s.ask(input);",
        "input": {"params": form()},
        "timeout_ms": 1_500,
    });
    let id = us.send("tools/call", json!({"name": "execute_code", "arguments": arguments}));
    let question = us.next("elicitation/create");
    // The time that the human takes is what is tested, and it is longer than the code may run:
    // there is no event to wait for instead.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let answered = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
    us.client.write(&answered);
    let result = us.client.wait(id)["result"].clone();
    assert_eq!(result["content"][0]["text"], answer.to_string(), "{result}");
}

/// A client that leaves takes its question with it.
#[test]
fn a_call_that_is_cancelled_while_it_asks_takes_its_question_back() {
    let mut us = Speaker::scripted(Legacy, can_ask());
    us.names();
    let id = us.send("tools/call", json!({"name": "s__ask", "arguments": {"params": form()}}));
    let question = us.next("elicitation/create");
    let cancel = json!({"requestId": id});
    us.client
        .write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}));
    let taken = us.next("notifications/cancelled");
    assert_eq!(taken["params"]["requestId"], question["id"], "{taken}");
}
