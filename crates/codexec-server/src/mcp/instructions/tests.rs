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
