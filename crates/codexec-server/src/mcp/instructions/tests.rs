use std::sync::Arc;

use super::*;
use crate::mcp::{CompactTools, DirectTools, Toolsets};

#[test]
fn the_servers_are_named_and_the_text_stays_under_two_kilobytes() {
    let server = |index: usize| ServerName::new(&format!("server-{index}")).expect("name");
    let few = Toolsets::new(vec![Arc::new(CompactTools)]).instructions(&[server(1), server(2)]);
    assert!(few.ends_with("Servers: server-1, server-2."), "{few}");
    let many: Vec<ServerName> = (0..500).map(server).collect();
    let many = Toolsets::new(vec![Arc::new(CompactTools)]).instructions(&many);
    assert!(many.len() <= 2_000, "{}", many.len());
    assert!(many.ends_with("more (Object.keys(tools))"), "{many}");
}

#[test]
fn the_compact_tools_are_explained_first() {
    let both = Toolsets::new(vec![Arc::new(DirectTools), Arc::new(CompactTools)]).instructions(&[]);
    assert!(both.starts_with(COMPACT) && both.contains("server__tool"), "{both}");
}
