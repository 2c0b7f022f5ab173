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
}

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
    }
}

/// An image that a guest emits.
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
}

impl ImageType {
    /// Detects the type from the magic bytes.
    pub fn of(bytes: &[u8]) -> Option<ImageType> {
        let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice());
        if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some(ImageType::Png)
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            Some(ImageType::Jpeg)
        } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
            Some(ImageType::Gif)
        } else {
            is_webp.then_some(ImageType::Webp)
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ImageType::Png => "image/png",
            ImageType::Jpeg => "image/jpeg",
            ImageType::Gif => "image/gif",
            ImageType::Webp => "image/webp",
        }
    }
}
