//! Reads the metadata of installed packages. Packages can claim anything, so reads are bounded, and
//! the result is only displayed.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use codexec_types::{Language, PackageName};

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackageInfo {
    /// The normalised name, which is the same for all spellings.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) version: String,
    /// The package's metadata folder, relative to the packages folder.
    folder: PathBuf,
}

const MAX_DISTS: usize = 5_000;
/// Name and version are in the first lines of a file that may contain a whole manual.
const METADATA_BYTES: u64 = 16 << 10;
const JSON_BYTES: u64 = 1 << 20;
const RECORD_BYTES: u64 = 16 << 20;
const MAX_WORD_CHARS: usize = 128;

/// Returns the packages in a folder, sorted by name.
pub(super) fn list_installed(language: Language, folder: &Path) -> Vec<PackageInfo> {
    let mut dists = match language {
        Language::Python => read_python(folder),
        Language::Node => read_node(folder),
        Language::JavaScript | Language::TypeScript | Language::Bash => Vec::new(),
    };
    dists.sort();
    dists.dedup_by(|a, b| a.key == b.key);
    dists
}

fn read_python(folder: &Path) -> Vec<PackageInfo> {
    let is_about_one = |name: &String| name.ends_with(".dist-info") || name.ends_with(".egg-info");
    let read = |name: String| {
        let about = ["METADATA", "PKG-INFO"]
            .iter()
            .find_map(|file| read_text(&folder.join(&name).join(file), METADATA_BYTES))?;
        let field = |field: &str| {
            let head = about.lines().take_while(|line| !line.trim().is_empty());
            let mut values = head.filter_map(|line| line.strip_prefix(field));
            values.next().and_then(printable_word)
        };
        let (own, version) = (field("Name:")?, field("Version:")?);
        let key = PackageName::parse(Language::Python, &own).ok()?.key();
        Some(PackageInfo { key, name: own, version, folder: PathBuf::from(name) })
    };
    list_names(folder).into_iter().filter(is_about_one).filter_map(read).collect()
}

fn read_node(folder: &Path) -> Vec<PackageInfo> {
    let scoped = |scope: &String| {
        let inside = list_names(&folder.join(scope)).into_iter();
        inside.map(|name| format!("{scope}/{name}")).collect::<Vec<_>>()
    };
    let all = list_names(folder)
        .into_iter()
        .flat_map(|name| if name.starts_with('@') { scoped(&name) } else { vec![name] });
    let read = |name: String| {
        let about = read_text(&folder.join(&name).join("package.json"), JSON_BYTES)?;
        let about: serde_json::Value = serde_json::from_str(&about).ok()?;
        let version = about.get("version").and_then(|version| printable_word(version.as_str()?))?;
        Some(PackageInfo { key: name.clone(), folder: PathBuf::from(&name), name, version })
    };
    all.take(MAX_DISTS).filter_map(read).collect()
}

/// Returns the files that an installed Python package lists as its own, relative to the folder.
pub(super) fn list_files(folder: &Path, dist: &PackageInfo) -> Vec<PathBuf> {
    let record =
        read_text(&folder.join(&dist.folder).join("RECORD"), RECORD_BYTES).unwrap_or_default();
    let listed = record.lines().filter_map(|line| {
        // The path may contain commas; the two fields after it cannot.
        let path = line.rsplitn(3, ',').nth(2)?;
        let path = PathBuf::from(path.trim_matches('"'));
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        is_inside.then_some(path)
    });
    // A Node package has no such list: all its files are in its folder.
    listed.chain([dist.folder.clone()]).collect()
}

/// True if an npm package has install scripts.
pub(super) fn has_scripts(folder: &Path, dist: &PackageInfo) -> bool {
    let own = folder.join(&dist.folder);
    let about = read_text(&own.join("package.json"), JSON_BYTES).unwrap_or_default();
    let about: serde_json::Value = serde_json::from_str(&about).unwrap_or_default();
    let scripts = about.get("scripts");
    let has = |name: &&str| scripts.and_then(|scripts| scripts.get(*name)).is_some();
    ["preinstall", "install", "postinstall"].iter().any(has) || own.join("binding.gyp").is_file()
}

fn list_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).take(MAX_DISTS).collect()
}

fn read_text(path: &Path, max_bytes: u64) -> Option<String> {
    // Follows links, which stay inside the tree; pipes and devices were not copied.
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file);
    found?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(max_bytes).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the text if it is a single printable word.
fn printable_word(text: &str) -> Option<String> {
    let text = text.trim();
    let is_plain = |c: char| c.is_ascii_graphic();
    let is_fine = !text.is_empty() && text.chars().all(is_plain) && text.len() <= MAX_WORD_CHARS;
    is_fine.then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
