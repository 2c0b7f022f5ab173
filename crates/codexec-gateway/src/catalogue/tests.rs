use super::*;

fn servers() -> Vec<ServerName> {
    ["a", "a__b", "my-server"].map(|name| ServerName::new(name).expect("a name")).to_vec()
}

#[track_caller]
fn check(name: &str, expected: &[(&str, &str)]) {
    let servers = servers();
    let pairs = split_name(name, &servers);
    let actual: Vec<(&str, &str)> =
        pairs.iter().map(|pair| (pair.server.as_str(), pair.tool)).collect();
    assert_eq!(actual, expected, "{name}");
}

#[test]
fn joined_names_stand_for_pairs() {
    check("mcp__a__t", &[("a", "t")]);
    check("a.t", &[("a", "t")]);
    check("a:t.u", &[("a", "t.u")]);
    check("a/t", &[("a", "t")]);
    check("a__b__t", &[("a__b", "t"), ("a", "b__t")]);
    check("mcp__my-server__t", &[("my-server", "t")]);
    check("my_server.t", &[("my-server", "t")]);
    check("unknown.t", &[]);
    check("a.", &[]);
    check("t", &[]);
}

#[test]
fn servers_go_by_name_and_alias() {
    let servers = servers();
    let find = |name: &str| find_server(name, &servers).map(ServerName::as_str);
    assert_eq!(find("my-server"), Some("my-server"));
    assert_eq!(find("my_server"), Some("my-server"));
    assert_eq!(find("My-Server"), None);
    let alike = ["x-y_z", "x_y-z"].map(|name| ServerName::new(name).expect("a name"));
    assert_eq!(find_servers("x-y_z", &alike), [&alike[0]]);
    assert_eq!(find_servers("x_y_z", &alike), [&alike[0], &alike[1]]);
    assert_eq!(find_server("x_y_z", &alike), None);
}
