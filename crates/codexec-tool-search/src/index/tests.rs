use super::*;

fn documents() -> Vec<ToolDocument<'static>> {
    let tool = |server, name, description| ToolDocument {
        server,
        name,
        description,
        ..ToolDocument::default()
    };
    vec![
        tool("github", "get_issue", "Reads one issue of a repository."),
        tool("github", "createPullRequest", "Opens a pull request."),
        tool("files", "delete_directory", "Removes a directory and all it holds."),
        tool("files", "read_file", "Reads a file from disk."),
        tool("weather", "forecast", "The weather of the coming days for a city."),
    ]
}

fn check(query: &str, expected: &[&str]) {
    let documents = documents();
    let ranked = ToolIndex::new(&documents).rank(query);
    let names: Vec<&str> = ranked.iter().map(|&at| documents[at].name).collect();
    assert_eq!(names.get(..expected.len()).unwrap_or(&names), expected, "{query}");
}

#[test]
fn names_count_most() {
    check("get_issue", &["get_issue"]);
    check("pull request", &["createPullRequest"]);
    check("PullRequests", &["createPullRequest"]);
}

#[test]
fn synonyms_stems_and_typos_match() {
    check("erase a folder", &["delete_directory"]);
    check("forecasting", &["forecast"]);
    check("forcast", &["forecast"]);
    check("dir", &["delete_directory"]);
}

#[test]
fn a_query_without_match_finds_nothing() {
    check("quaternion", &[]);
    check("", &[]);
    check("the of and", &[]);
    assert_eq!(ToolIndex::new(&documents()).rank("quaternion"), Vec::<usize>::new());
    assert_eq!(ToolIndex::new(&[]).rank("anything"), Vec::<usize>::new());
}

#[test]
fn the_order_is_deterministic() {
    let documents = documents();
    let first = ToolIndex::new(&documents).rank("read a file or an issue of files");
    for _ in 0..10 {
        assert_eq!(ToolIndex::new(&documents).rank("read a file or an issue of files"), first);
    }
}

#[test]
fn phrases_and_compounds_match() {
    check("get rid of a folder", &["delete_directory"]);
    check("pullrequest", &["createPullRequest"]);
    check("fore cast", &["forecast"]);
}

#[test]
fn chinese_japanese_and_korean_queries_find_tools_in_either_language() {
    check("删除文件夹", &["delete_directory"]);
    check("ファイルを読み込む", &["read_file"]);
    check("날씨 예보", &["forecast"]);
    check("创建拉取请求", &["createPullRequest"]);
    let documents = vec![
        ToolDocument {
            name: "a", description: "删除一个文件夹。", ..ToolDocument::default()
        },
        ToolDocument {
            name: "b", description: "予約を確定します。", ..ToolDocument::default()
        },
    ];
    let index = ToolIndex::new(&documents);
    assert_eq!(index.rank("予約の確定"), [1]);
    assert_eq!(index.rank("请删除文件夹")[0], 0);
}

#[test]
fn the_end_of_a_long_request_counts() {
    let polite = "could you please be so kind as to do this for me, if it is not too much, ";
    check(&format!("{}erase the folder", polite.repeat(3)), &["delete_directory"]);
}

#[test]
fn each_clause_finds_its_tool() {
    let documents = documents();
    let ranked = ToolIndex::new(&documents).rank(
        "read the file with my notes from the disk, then tell me the weather forecast of the city",
    );
    let mut best: Vec<&str> = ranked.iter().take(2).map(|&at| documents[at].name).collect();
    best.sort_unstable();
    assert_eq!(best, ["forecast", "read_file"]);
}

#[test]
fn a_named_server_goes_first() {
    let documents = vec![
        ToolDocument { server: "gitlab", name: "create_issue", ..ToolDocument::default() },
        ToolDocument { server: "github", name: "create_issue", ..ToolDocument::default() },
    ];
    let index = ToolIndex::new(&documents);
    assert_eq!(index.rank("create an issue on github"), [1, 0]);
    assert_eq!(index.rank("create an issue on gitlab"), [0, 1]);
}

#[test]
fn a_name_of_stop_words_is_found() {
    let documents = vec![
        ToolDocument { server: "a", name: "which", ..ToolDocument::default() },
        ToolDocument { server: "a", name: "who", ..ToolDocument::default() },
    ];
    let index = ToolIndex::new(&documents);
    assert_eq!(index.rank("who"), [1]);
    assert_eq!(index.rank("the of and"), Vec::<usize>::new());
}
