//! Checks that search finds the expected tools in a catalogue written for this test. The figures
//! for real catalogues are in `docs/performance.md`; `cargo bench --bench search` measures them.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fall over, its helpers too"
)]

#[path = "recall/measure.rs"]
mod measure;

use std::path::Path;

use measure::{ToolFinder, definitions, measure, queries};

#[test]
fn four_of_five_queries_find_their_tool_among_the_first_five() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recall");
    let tools = definitions(&folder.join("catalogue.json"));
    let finder = ToolFinder::new(&tools);
    let measured = measure(&finder, &queries(&folder.join("queries.jsonl")));
    let [first, five, _] = measured.found;
    let misses = measured.misses.join("\n  ");
    assert!(first >= 0.50, "{first:.3} of the queries have it first; missed:\n  {misses}");
    assert!(five >= 0.80, "{five:.3} of the queries have it among five; missed:\n  {misses}");
}
