use super::*;

const SERVER: &str = "program";

/// The history of a server: each step is its version, the tools that it lists
/// (`name=definition`), and the tools that are then held.
struct History {
    mode: TrustMode,
    prior: PriorTrust,
}

impl History {
    fn new(mode: TrustMode) -> History {
        History { mode, prior: PriorTrust::Nothing }
    }

    #[track_caller]
    fn list(&mut self, version: &str, tools: &[&str], held: &[&str]) {
        self.list_as(SERVER, version, tools, held);
    }

    #[track_caller]
    fn list_as(&mut self, identity: &str, version: &str, tools: &[&str], held: &[&str]) {
        let tools = tools.iter().map(|tool| {
            let (name, definition) = tool.split_once('=').expect("name=definition");
            (name, PinnedDefinition { sha256: definition.to_owned(), text: None })
        });
        let live = LiveTools { identity, version: Some(version), tools: tools.collect() };
        let verdict = decide(self.mode, std::mem::take(&mut self.prior), live);
        if let Some(record) = verdict.record {
            self.prior = PriorTrust::Record(record);
        }
        let actual: Vec<String> =
            verdict.held.iter().map(|(tool, why)| format!("{tool} {why:?}")).collect();
        assert_eq!(actual, held);
    }

    /// Approves a held tool, as `codexec servers approve` does.
    fn approve(&mut self, tool: &str) {
        let PriorTrust::Record(record) = &mut self.prior else { panic!("no record") };
        let definition = record.held.get(tool).expect("held").clone();
        record.by_hand = true;
        record.pin(tool, definition);
    }
}

#[test]
fn up_4_auto_accepts_the_first_and_holds_a_change() {
    let mut history = History::new(TrustMode::Auto);
    history.list("1", &["a=1", "b=1"], &[]);
    history.list("1", &["a=2", "b=1"], &["a Changed"]);
    // A held change stays held if the tool disappears, or is the old one for a while.
    history.list("1", &["b=1"], &[]);
    history.list("1", &["a=2", "b=1"], &["a Changed"]);
    history.list("1", &["a=1", "b=1"], &[]);
    history.list("1", &["a=2", "b=1", "c=1"], &["a Changed"]);
}

#[test]
fn up_4_auto_accepts_a_change_with_a_new_version_only() {
    let mut history = History::new(TrustMode::Auto);
    history.list("1", &["a=1"], &[]);
    history.list("2", &["a=2"], &[]);
    history.list("2", &["a=3"], &["a Changed"]);
    // The new version was listed with the old definition, so it no longer permits a change.
    history.list("3", &["a=2"], &[]);
    history.list("3", &["a=3"], &["a Changed"]);
    history.approve("a");
    history.list("3", &["a=3"], &[]);
    history.list("4", &["a=4"], &["a Changed"]);
}

#[test]
fn up_4_auto_holds_names_that_are_easily_confused() {
    let mut history = History::new(TrustMode::Auto);
    history.list("1", &["get-issue=1", "get.issue=1", "п=1"], &[]);
    history.list(
        "1",
        &["get_issue=1", "gеt-issue=1", "other=1"],
        &["get_issue Alike", "gеt-issue Alike"],
    );
    history.list("1", &["x-y=1", "x_y=1"], &["x_y Alike"]);
}

#[test]
fn up_4_ask_holds_everything_after_the_first_listing() {
    let mut history = History::new(TrustMode::Ask);
    history.list("1", &["a=1"], &[]);
    history.list("2", &["a=2", "b=1"], &["a Changed", "b New"]);
    history.approve("b");
    history.list("2", &["a=2", "b=1"], &["a Changed"]);
    history.list("2", &["a=1", "b=2"], &["b Changed"]);
}

#[test]
fn up_4_ask_counts_an_empty_list_as_the_first_listing() {
    let mut history = History::new(TrustMode::Ask);
    history.list("1", &[], &[]);
    history.list("1", &["a=1"], &["a New"]);
}

#[test]
fn up_4_manual_holds_everything() {
    let mut history = History::new(TrustMode::Manual);
    history.list("1", &["a=1", "b=1"], &["a New", "b New"]);
    history.approve("a");
    history.list("1", &["a=1", "b=1"], &["b New"]);
    history.list("2", &["a=2", "b=1"], &["a Changed", "b New"]);
}

#[test]
fn up_4_another_server_of_the_same_name_inherits_nothing() {
    let mut auto = History::new(TrustMode::Auto);
    auto.list("1", &["a=1"], &[]);
    auto.list_as("other", "1", &["a=2"], &[]);
    auto.list_as("other", "1", &["a=1"], &["a Changed"]);
    auto.approve("a");
    auto.list_as("third", "9", &["a=1"], &["a Moved"]);
    auto.list_as("other", "1", &["a=1"], &[]);

    for mode in [TrustMode::Ask, TrustMode::Manual] {
        let mut history = History::new(mode);
        history.list("1", &[], &[]);
        history.list_as("other", "1", &["a=1"], &["a Moved"]);
        history.list_as("other", "1", &["a=1"], &["a Moved"]);
    }
}

#[test]
fn up_4_a_held_tool_stays_held_in_another_mode() {
    let mut history = History::new(TrustMode::Manual);
    history.list("1", &["a=1", "b=1"], &["a New", "b New"]);
    history.approve("a");
    history.mode = TrustMode::Auto;
    history.list("1", &["a=1", "b=1", "c=1"], &["b New"]);
}

#[test]
fn up_4_a_lost_record_approves_nothing() {
    for mode in TrustMode::ALL {
        let mut history = History { mode, prior: PriorTrust::Lost("damaged".to_owned()) };
        history.list("1", &["a=1"], &["a Lost"]);
    }
}

#[test]
fn up_4_the_number_of_recorded_tools_is_bounded() {
    let mut history = History::new(TrustMode::Auto);
    history.list("1", &[], &[]);
    let PriorTrust::Record(record) = &mut history.prior else { panic!("no record") };
    for n in 0..MAX_PINS {
        assert!(
            record.pin(&format!("t{n}"), PinnedDefinition { sha256: "1".to_owned(), text: None })
        );
    }
    history.list("1", &["one-more=1", "t5=1"], &["one-more TooMany"]);
}
