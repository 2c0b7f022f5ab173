//! The cost of working in a large directory of the user's.

use std::fs;

use serde_json::json;

use crate::support::Client;
use crate::{Bench, median, ms, sample};

/// In folders of 1,000 files.
const FILES: usize = 100_000;

impl Bench {
    pub(crate) fn directory(&mut self) {
        let home = tempfile::tempdir().expect("a directory");
        let project = home.path().join("project");
        let count = if self.rounds < 10 { 1_000 } else { FILES };
        for n in 0..count {
            if n % 1_000 == 0 {
                fs::create_dir_all(project.join((n / 1_000).to_string())).expect("made");
            }
            fs::write(project.join(format!("{}/{n}", n / 1_000)), "").expect("written");
        }
        let settings = format!("[files]\nallowed = [{:?}]\n", project.display().to_string());
        let settings_file = home.path().join("settings.toml");
        fs::write(&settings_file, settings).expect("written");
        let mut client = Client::with(&json!({}), |command| {
            command.arg("--config").arg(&settings_file);
        });
        for (what, language, code) in [
            ("Python `1+1` in a directory of 100,000 files", "python", "1+1"),
            ("Bash `1+1` in a directory of 100,000 files", "bash", "echo $((1+1))"),
        ] {
            let without = json!({"language": language, "code": code});
            let with = json!({"language": language, "code": code, "working_dir": project});
            let (mut alone, mut inside) = (Vec::new(), Vec::new());
            // Alternating, so that other load on the machine affects both.
            for _ in 0..self.rounds {
                for (call, times) in [(&without, &mut alone), (&with, &mut inside)] {
                    times.extend(sample(1, || {
                        assert_eq!(client.call("execute_code", call).fine().trim_end(), "2");
                    }));
                }
            }
            alone.sort();
            inside.sort();
            let above = ms(median(&inside)) - ms(median(&alone));
            let note =
                format!("without: {:.2} ms, difference {above:.2} (aim 1)", ms(median(&alone)));
            self.push_times(what, &inside, None, note);
        }
    }
}
