use super::*;

#[test]
fn the_servers_are_named_and_the_text_stays_under_two_kilobytes() {
    let server = |index: usize| ServerName::new(&format!("server-{index}")).expect("name");
    let few = text(&Toolsets::default(), &[server(1), server(2)]);
    assert!(few.ends_with("Servers: server-1, server-2."), "{few}");
    let many: Vec<ServerName> = (0..500).map(server).collect();
    let many = text(&Toolsets::default(), &many);
    assert!(many.len() <= 2_000, "{}", many.len());
    assert!(many.ends_with("more (Object.keys(tools))"), "{many}");
}

#[test]
fn every_toolset_is_explained_and_all_together_stay_under_two_kilobytes() {
    let servers: Vec<ServerName> =
        (0..500).map(|index| ServerName::new(&format!("server-{index}")).expect("name")).collect();
    for (set, word) in [
        ("code-executor", "executePython"),
        ("code-execution-mode", "run_python"),
        ("mcpproxy", "code_execution"),
        ("direct", "server__tool"),
    ] {
        let one = text(&Toolsets::parse([set]).expect("a toolset"), &servers);
        assert!(one.contains(word) && one.len() <= 2_000, "{one}");
    }
    let all = text(&Toolsets::parse(Toolset::ALL.map(Toolset::name)).expect("all"), &servers);
    assert!(all.len() <= 2_000, "{}", all.len());
}
