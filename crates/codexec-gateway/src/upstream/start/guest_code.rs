//! Paths in a server's arguments and variables that lead to code of guests.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use super::{
    StartPlanner, StartRefusal,
    command_line::{CommandLine, Reading},
    is_program,
};
use codexec_mcp_config::{is_code, is_interpreter, program_name};

/// Characters that end a path in a shell's line, in code, in lists and in URLs.
const DELIMITERS: [char; 24] = [
    '"', '\'', '`', ';', '&', '|', '<', '>', '(', ')', '[', ']', '{', '}', ',', '=', ':', '@', '*',
    '?', '!', '#', '%', '\\',
];

impl StartPlanner<'_> {
    /// THREAT[CFG-8]: arguments that decide what runs name nothing that guests can write. Other
    /// arguments are the server's data, unless they name a file with code.
    pub(super) fn check_arguments(&self) -> Result<(), StartRefusal> {
        let line = self.command_line();
        let mut bases = vec![self.plan.cwd.clone()];
        for (arg, reading) in self.plan.args.iter().zip(line.readings) {
            let checked = self.check_text(arg, reading, &mut bases);
            let refused = |err: StartRefusal| match line.is_opaque {
                true => err.of_launcher(self.name()),
                false => err,
            };
            checked.map_err(refused)?;
        }
        Ok(())
    }

    /// True if nothing tells code from data, as in a shell's line.
    pub(super) fn is_opaque(&self) -> bool {
        self.command_line().is_opaque
    }

    /// Checks every path in a variable or an argument. Directories are added to `bases`, against
    /// which later relative paths are checked too: a line may change to them.
    pub(super) fn check_text(
        &self,
        text: &str,
        reading: Reading,
        bases: &mut Vec<PathBuf>,
    ) -> Result<(), StartRefusal> {
        if reading == Reading::Data {
            return self.parts(text).iter().try_for_each(|part| self.check_file(part));
        }
        let is_package = text.contains(['@', ':']);
        let starts_in_guests = self.guest_directory(&self.plan.cwd).is_some();
        for part in self.parts(text) {
            for base in bases.clone() {
                let is_anchored = part.starts_with('/')
                    || part.split('/').next().is_some_and(|first| matches!(first, "." | ".."));
                // CFG-7 handles bare words in a guest-writable directory.
                let is_guests = starts_in_guests && base == self.plan.cwd;
                let is_path = match reading {
                    Reading::Data => false,
                    Reading::Name => part.contains('/') && !is_package,
                    Reading::Text => part.contains('/') || !is_guests,
                    Reading::Line => !is_guests,
                    Reading::Path => true,
                };
                let is_path = is_path || is_anchored;
                if !is_path {
                    continue;
                }
                let path = base.join(&part);
                self.check_path(&path)?;
                if path.is_dir()
                    && let Ok(folder) = path.canonicalize()
                    && !bases.contains(&folder)
                {
                    bases.push(folder);
                }
            }
        }
        Ok(())
    }

    /// Refuses a guests' file that is a program, or has the ending of code.
    pub(super) fn check_file(&self, part: &str) -> Result<(), StartRefusal> {
        let path = self.plan.cwd.join(part);
        let is_code_file = path.is_file() && is_code(&path) || is_program(&path);
        if is_code_file { self.check_path(&path) } else { Ok(()) }
    }

    /// Returns everything in a text that may be a path, with variables and `~` replaced.
    pub(super) fn parts(&self, text: &str) -> Vec<String> {
        let text = self.expand(text);
        if text.starts_with('/') && Path::new(&text).exists() {
            return vec![text];
        }
        let unescaped = text.replace('\\', "");
        let mut parts: Vec<&str> = text.split(is_delimiter).collect();
        parts.extend(text.split(['"', '\'']));
        parts.extend(text.split_once('=').map(|(_, value)| value));
        parts.push(&text);
        // The directories of guests may have spaces in their names.
        for directory in &self.settings.guest_paths.files.allowed {
            let Some(directory) = directory.to_str() else { continue };
            for (at, _) in unescaped.match_indices(directory) {
                let (before, found) = unescaped.split_at(at);
                let (_, below) = found.split_at(directory.len());
                let end = below.find(is_delimiter).unwrap_or(below.len());
                let is_start =
                    !before.ends_with(|c: char| c.is_alphanumeric() || "._-/".contains(c));
                parts.extend(found.get(..directory.len() + end).filter(|_| is_start));
            }
        }
        // `-I/srv/lib`
        let joined = parts.iter().filter_map(|part| {
            let mut rest = part.strip_prefix('-')?.chars();
            rest.next().filter(|letter| *letter != '-').map(|_| rest.as_str())
        });
        let parts = parts.iter().copied().chain(joined.collect::<Vec<_>>());
        let mut parts: Vec<String> = parts.map(|part| self.at_home(part)).collect();
        // `-m package.module`
        let is_dotted = |part: &&String| part.contains('.') && !part.contains('/');
        let modules: Vec<String> =
            parts.iter().filter(is_dotted).map(|part| part.replace('.', "/")).collect();
        parts.extend(modules.into_iter().filter(|module| !module.starts_with('/')));
        let mut seen = HashSet::new();
        parts.retain(|part| !part.is_empty() && seen.insert(part.clone()));
        parts
    }

    pub(super) fn words(&self, text: &str) -> Vec<String> {
        self.expand(text).split(is_delimiter).map(|word| self.at_home(word)).collect()
    }

    fn command_line(&self) -> CommandLine {
        // The command may be a link to an interpreter.
        let real = self.plan.program.canonicalize().unwrap_or_default();
        let real = real.to_str().map_or("", program_name);
        let is_link = is_interpreter(real) && !CommandLine::knows(self.name());
        CommandLine::read(if is_link { real } else { self.name() }, &self.plan.args)
    }

    /// Replaces `$NAME`, `${NAME}` and `${NAME:-default}`, as a shell would.
    fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let braces = after.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            let inside = braces.map_or(after, |(inside, _)| inside);
            let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (name, tail) = inside.split_at(end.unwrap_or(inside.len()));
            let default = braces.map_or("", |_| tail.trim_start_matches([':', '-', '=']));
            out.push_str(self.variable(name).as_deref().unwrap_or(default));
            rest = braces.map_or(tail, |(_, behind)| behind);
        }
        out.push_str(rest);
        out
    }

    fn variable(&self, name: &str) -> Option<String> {
        match (self.plan.env.get(name), name) {
            (Some(value), _) => Some(value.clone()),
            (None, "HOME") => Some(self.settings.user_home.as_ref()?.display().to_string()),
            (None, "PWD") => Some(self.plan.cwd.display().to_string()),
            (None, _) => None,
        }
    }

    /// Replaces `~` and `~name` at the start.
    fn at_home(&self, part: &str) -> String {
        let Some((user, below)) = part.strip_prefix('~').map(|rest| match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        }) else {
            return part.to_owned();
        };
        let home = self.variable("HOME").unwrap_or_default();
        let home = match user {
            "" => home,
            user => {
                let homes = Path::new(&home).parent().unwrap_or(Path::new("/"));
                homes.join(user).display().to_string()
            }
        };
        format!("{home}{below}")
    }
}

fn is_delimiter(c: char) -> bool {
    c.is_whitespace() || DELIMITERS.contains(&c)
}
