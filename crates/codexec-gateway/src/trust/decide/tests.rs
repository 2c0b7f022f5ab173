use super::*;

const SERVER: &str = "program";

/// A server over its life: each step is what it lists (`name=definition`), which version it says
/// it has, and what is then held.
struct Life {
    mode: TrustMode,
    known: Known,
}

impl Life {
    fn new(mode: TrustMode) -> Life {
        Life { mode, known: Known::Nothing }
    }

    #[track_caller]
    fn lists(&mut self, version: &str, tools: &[&str], held: &[&str]) {
        self.lists_as(SERVER, version, tools, held);
    }

    #[track_caller]
    fn lists_as(&mut self, identity: &str, version: &str, tools: &[&str], held: &[&str]) {
        let tools = tools.iter().map(|tool| {
            let (name, definition) = tool.split_once('=').expect("name=definition");
            (name, Definition { sha256: definition.to_owned(), text: None })
        });
        let live = Live { identity, version: Some(version), tools: tools.collect() };
        let verdict = decide(self.mode, std::mem::take(&mut self.known), live);
        if let Some(record) = verdict.record {
            self.known = Known::Record(record);
        }
        let actual: Vec<String> =
            verdict.held.iter().map(|(tool, why)| format!("{tool} {why:?}")).collect();
        assert_eq!(actual, held);
    }

    /// As `codexec servers approve` does it.
    fn approves(&mut self, tool: &str) {
        let Known::Record(record) = &mut self.known else { panic!("nothing is known") };
        let definition = record.held.get(tool).expect("held").clone();
        record.by_hand = true;
        record.pin(tool, definition);
    }
}

#[test]
fn up_4_auto_takes_the_first_and_holds_a_change() {
    let mut life = Life::new(TrustMode::Auto);
    life.lists("1", &["a=1", "b=1"], &[]);
    life.lists("1", &["a=2", "b=1"], &["a Changed"]);
    // It is not forgotten by hiding, and not by being what it was for a while.
    life.lists("1", &["b=1"], &[]);
    life.lists("1", &["a=2", "b=1"], &["a Changed"]);
    life.lists("1", &["a=1", "b=1"], &[]);
    life.lists("1", &["a=2", "b=1", "c=1"], &["a Changed"]);
}

#[test]
fn up_4_auto_takes_a_change_with_a_new_version_only() {
    let mut life = Life::new(TrustMode::Auto);
    life.lists("1", &["a=1"], &[]);
    life.lists("2", &["a=2"], &[]);
    life.lists("2", &["a=3"], &["a Changed"]);
    // The new version was seen with the old definition: it is used up.
    life.lists("3", &["a=2"], &[]);
    life.lists("3", &["a=3"], &["a Changed"]);
    life.approves("a");
    life.lists("3", &["a=3"], &[]);
    life.lists("4", &["a=4"], &["a Changed"]);
}

#[test]
fn up_4_auto_holds_what_can_be_taken_for_another() {
    let mut life = Life::new(TrustMode::Auto);
    life.lists("1", &["get-issue=1", "get.issue=1", "п=1"], &[]);
    life.lists(
        "1",
        &["get_issue=1", "gеt-issue=1", "other=1"],
        &["get_issue Alike", "gеt-issue Alike"],
    );
    life.lists("1", &["x-y=1", "x_y=1"], &["x_y Alike"]);
}

#[test]
fn up_4_ask_holds_whatever_comes_later() {
    let mut life = Life::new(TrustMode::Ask);
    life.lists("1", &["a=1"], &[]);
    life.lists("2", &["a=2", "b=1"], &["a Changed", "b New"]);
    life.approves("b");
    life.lists("2", &["a=2", "b=1"], &["a Changed"]);
    life.lists("2", &["a=1", "b=2"], &["b Changed"]);
}

#[test]
fn up_4_ask_counts_an_empty_list_as_seen() {
    let mut life = Life::new(TrustMode::Ask);
    life.lists("1", &[], &[]);
    life.lists("1", &["a=1"], &["a New"]);
}

#[test]
fn up_4_manual_holds_everything() {
    let mut life = Life::new(TrustMode::Manual);
    life.lists("1", &["a=1", "b=1"], &["a New", "b New"]);
    life.approves("a");
    life.lists("1", &["a=1", "b=1"], &["b New"]);
    life.lists("2", &["a=2", "b=1"], &["a Changed", "b New"]);
}

#[test]
fn up_4_another_server_of_the_same_name_inherits_nothing() {
    let mut auto = Life::new(TrustMode::Auto);
    auto.lists("1", &["a=1"], &[]);
    auto.lists_as("other", "1", &["a=2"], &[]);
    auto.lists_as("other", "1", &["a=1"], &["a Changed"]);
    auto.approves("a");
    auto.lists_as("third", "9", &["a=1"], &["a Moved"]);
    auto.lists_as("other", "1", &["a=1"], &[]);

    for mode in [TrustMode::Ask, TrustMode::Manual] {
        let mut life = Life::new(mode);
        life.lists("1", &[], &[]);
        life.lists_as("other", "1", &["a=1"], &["a Moved"]);
        life.lists_as("other", "1", &["a=1"], &["a Moved"]);
    }
}

#[test]
fn up_4_what_waits_goes_on_waiting_in_another_mode() {
    let mut life = Life::new(TrustMode::Manual);
    life.lists("1", &["a=1", "b=1"], &["a New", "b New"]);
    life.approves("a");
    life.mode = TrustMode::Auto;
    life.lists("1", &["a=1", "b=1", "c=1"], &["b New"]);
}

#[test]
fn up_4_what_is_lost_approves_nothing() {
    for mode in TrustMode::ALL {
        let mut life = Life { mode, known: Known::Lost("damaged".to_owned()) };
        life.lists("1", &["a=1"], &["a Lost"]);
    }
}

#[test]
fn up_4_tools_without_end_are_not_remembered_without_end() {
    let mut life = Life::new(TrustMode::Auto);
    life.lists("1", &[], &[]);
    let Known::Record(record) = &mut life.known else { panic!("nothing is known") };
    for n in 0..MAX_PINS {
        assert!(record.pin(&format!("t{n}"), Definition { sha256: "1".to_owned(), text: None }));
    }
    life.lists("1", &["one-more=1", "t5=1"], &["one-more TooMany"]);
}
