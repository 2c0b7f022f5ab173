use std::path::Path;

use serde::{Deserialize, Serialize};

/// A file that an execution left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Relative to the execution's working directory.
    pub path: String,
    pub bytes: u64,
}

/// The changes that an execution made in its working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChanges {
    pub created: Vec<Artifact>,
    pub modified: Vec<Artifact>,
    pub deleted: Vec<Artifact>,
    /// Files that the user's programs would load or run by themselves. They are not written to the
    /// user's directory, but kept as artifacts.
    #[serde(default)]
    pub held_back: Vec<NotWritten>,
    /// Files that somebody else changed while the code ran. The other version stays, and the code's
    /// version is kept as an artifact.
    #[serde(default)]
    pub conflicts: Vec<NotWritten>,
    /// Number of changes that did not fit in these lists.
    pub left_out: u64,
    /// For a cell of a session: what processes that earlier cells left running did after the last
    /// reply and before this cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_cells: Option<Box<FileChanges>>,
    /// The changes that nested code made in the user's directories, in its own executions and
    /// sessions. The paths are absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<Box<FileChanges>>,
}

/// Maximum number of entries in each list of what nested code did.
const MAX_NESTED: usize = 50;

/// A file of an execution that was not written to the user's directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotWritten {
    /// Relative to the execution's working directory.
    pub path: String,
    pub reason: String,
}

impl FileChanges {
    pub fn is_empty(&self) -> bool {
        *self == FileChanges::default()
    }

    /// Adds what happened after this.
    pub fn append(&mut self, later: FileChanges) {
        let FileChanges {
            created,
            modified,
            deleted,
            held_back,
            conflicts,
            left_out,
            between_cells,
            nested,
        } = later;
        self.created.extend(created);
        self.modified.extend(modified);
        self.deleted.extend(deleted);
        self.held_back.extend(held_back);
        self.conflicts.extend(conflicts);
        self.left_out += left_out;
        if let Some(between) = between_cells {
            self.between_cells.get_or_insert_default().append(*between);
        }
        if let Some(nested) = nested {
            self.nested.get_or_insert_default().append(*nested);
        }
    }

    /// Adds what nested code did, as far as it concerns the user's files: the changes of its own
    /// directory if it has one, and those of the code that it ran itself.
    pub fn append_nested(&mut self, dir: Option<&Path>, other: &FileChanges) {
        match (dir, &other.nested) {
            (Some(dir), _) => self.append_from(dir, other),
            (None, Some(nested)) => self.append_from(Path::new("/"), nested),
            (None, None) => {}
        }
    }

    /// Adds what code did in the directory `dir`, with absolute paths. Each list stays bounded, and a
    /// file that is already in it is not added again.
    fn append_from(&mut self, dir: &Path, other: &FileChanges) {
        let written = [
            (&mut self.created, &other.created),
            (&mut self.modified, &other.modified),
            (&mut self.deleted, &other.deleted),
        ];
        for (list, added) in written {
            for file in added {
                let path = dir.join(&file.path).display().to_string();
                let is_full = list.len() >= MAX_NESTED;
                match list.iter_mut().find(|known| known.path == path) {
                    Some(known) => known.bytes = file.bytes,
                    None if is_full => self.left_out += 1,
                    None => list.push(Artifact { path, bytes: file.bytes }),
                }
            }
        }
        let not_written =
            [(&mut self.held_back, &other.held_back), (&mut self.conflicts, &other.conflicts)];
        for (list, added) in not_written {
            for file in added {
                let path = dir.join(&file.path).display().to_string();
                let is_full = list.len() >= MAX_NESTED;
                match list.iter_mut().find(|known| known.path == path) {
                    Some(known) => known.reason.clone_from(&file.reason),
                    None if is_full => self.left_out += 1,
                    None => list.push(NotWritten { path, reason: file.reason.clone() }),
                }
            }
        }
        self.left_out += other.left_out;
        // The paths of nested changes are absolute already, so that joining does not change them.
        for more in [&other.between_cells, &other.nested].into_iter().flatten() {
            self.append_from(dir, more);
        }
    }
}

/// An image or a recording that a guest emits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    pub mime: ImageType,
    pub base64: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageType {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
    #[serde(rename = "audio/wav")]
    Wav,
    #[serde(rename = "audio/mpeg")]
    Mp3,
    #[serde(rename = "audio/ogg")]
    Ogg,
    #[serde(rename = "audio/flac")]
    Flac,
}

/// The first bytes of an MP3 file without tags.
const MP3_FRAMES: [&[u8; 2]; 3] = [b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"];

impl ImageType {
    /// Detects the type from the magic bytes.
    pub fn of(bytes: &[u8]) -> Option<ImageType> {
        let riff_kind = bytes.starts_with(b"RIFF").then(|| bytes.get(8..12)).flatten();
        let is_mp3 = |start: &&[u8; 2]| bytes.starts_with(*start);
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(ImageType::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(ImageType::Jpeg)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(ImageType::Gif)
        } else if riff_kind == Some(b"WEBP") {
            Some(ImageType::Webp)
        } else if riff_kind == Some(b"WAVE") {
            Some(ImageType::Wav)
        } else if bytes.starts_with(b"OggS") {
            Some(ImageType::Ogg)
        } else if bytes.starts_with(b"fLaC") {
            Some(ImageType::Flac)
        } else if bytes.starts_with(b"ID3") || MP3_FRAMES.iter().any(is_mp3) {
            Some(ImageType::Mp3)
        } else {
            None
        }
    }

    /// True for a recording.
    pub fn is_audio(self) -> bool {
        match self {
            ImageType::Png | ImageType::Jpeg | ImageType::Gif | ImageType::Webp => false,
            ImageType::Wav | ImageType::Mp3 | ImageType::Ogg | ImageType::Flac => true,
        }
    }

    /// Finds the type by its MIME name.
    pub fn parse(name: &str) -> Option<ImageType> {
        let images = [ImageType::Png, ImageType::Jpeg, ImageType::Gif, ImageType::Webp];
        let audio = [ImageType::Wav, ImageType::Mp3, ImageType::Ogg, ImageType::Flac];
        images.into_iter().chain(audio).find(|one| one.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            ImageType::Png => "image/png",
            ImageType::Jpeg => "image/jpeg",
            ImageType::Gif => "image/gif",
            ImageType::Webp => "image/webp",
            ImageType::Wav => "audio/wav",
            ImageType::Mp3 => "audio/mpeg",
            ImageType::Ogg => "audio/ogg",
            ImageType::Flac => "audio/flac",
        }
    }
}
