use super::*;

fn token(name: &str) -> Identity {
    Identity::Token(TokenName::new(name).expect("a name"))
}

#[test]
fn every_principal_can_be_parsed_back() {
    for identity in [Identity::LocalUser, token("ci"), token("a.b-c_9")] {
        assert_eq!(Identity::parse(&identity.to_string()), Some(identity.clone()));
        for edge in Edge::ALL {
            let principal = Principal::new(identity.clone(), edge);
            for agent in [None, Some("planner"), Some("a/b@http token:x"), Some("ä")] {
                let principal = principal.for_agent(agent);
                assert_eq!(Principal::parse(&principal.to_string()), Some(principal));
            }
        }
    }
}

#[test]
fn the_text_form_is_stable() {
    let ann = Principal::new(token("ann"), Edge::Http).for_agent(Some("planner"));
    assert_eq!(ann.to_string(), "token:ann@http/planner");
    let local = Principal::new(Identity::LocalUser, Edge::CommandLine);
    assert_eq!(local.to_string(), "local@cli");
    assert_eq!(serde_json::to_string(&local).expect("text"), "\"local@cli\"");
}

#[test]
fn a_principal_of_an_older_version_has_no_edge() {
    let old: Principal = serde_json::from_str("\"local\"").expect("a principal");
    assert_eq!((old.identity(), old.edge(), old.agent()), (&Identity::LocalUser, None, None));
    assert_eq!(old.to_string(), "local");
}

#[test]
fn other_texts_name_no_principal() {
    let long = format!("token:{}", "x".repeat(65));
    for text in
        ["", "root", "Local", "token:", "token:a b", "token:a@ftp", "local@", "@stdio", &long]
    {
        assert_eq!(Principal::parse(text), None, "{text}");
    }
    assert_eq!(TokenName::new("a:b"), None);
    assert_eq!(TokenName::new("a/b"), None);
}

#[test]
fn the_name_of_an_agent_changes_no_identity() {
    let local = Principal::new(Identity::LocalUser, Edge::Stdio);
    let agent = local.for_agent(Some("token:admin"));
    assert_eq!((agent.identity(), agent.agent()), (&Identity::LocalUser, Some("token:admin")));
    let long = local.for_agent(Some(&"ä".repeat(1_000)));
    assert_eq!(long.agent().map(|agent| agent.chars().count()), Some(AGENT_CHARS));
    assert_eq!(local.for_agent(Some("\n\0")).agent(), None);
}
