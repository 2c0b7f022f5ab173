//! The pictures that a guest shows: counted, checked, and kept as files.

use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codexec_types::{Image, ImageType};

/// No execution shows more.
const MAX_IMAGES: usize = 10;
/// Of base64, all of them together: what an agent's context can hold at all.
const MAX_BASE64_BYTES: usize = 8 << 20;

/// The pictures of one execution.
#[derive(Clone, Debug, Default)]
pub struct Images {
    pub shown: Vec<Image>,
    /// Where each of `shown` is kept, as far as that worked.
    pub files: Vec<PathBuf>,
    /// How many more there were, or were no pictures.
    pub left_out: u32,
    /// Of all that were looked at, pictures or not: looking takes time.
    base64_bytes: usize,
}

impl Images {
    pub(crate) fn push(&mut self, image: Image) {
        let bytes = self.base64_bytes.saturating_add(image.base64.len());
        let has_room = self.shown.len() < MAX_IMAGES && bytes <= MAX_BASE64_BYTES;
        if has_room {
            self.base64_bytes = bytes;
        }
        // A client that passes on what is not a picture is refused by its model, and the whole
        // conversation with it.
        if has_room && is_what_it_says(&image) {
            self.shown.push(image);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// How many the guest showed, those that were left out included.
    pub fn count(&self) -> u32 {
        u32::try_from(self.shown.len()).unwrap_or(u32::MAX).saturating_add(self.left_out)
    }

    /// Writes each into the folder, beside what else is kept there. What cannot be written is
    /// still shown.
    pub(crate) async fn keep(&mut self, folder: PathBuf) {
        if self.shown.is_empty() {
            return;
        }
        let images = self.shown.clone();
        let writing = tokio::task::spawn_blocking(move || write_all(&folder, &images));
        match writing.await {
            Ok((files, Ok(()))) => self.files = files,
            Ok((files, Err(error))) => {
                tracing::warn!(%error, "a picture cannot be kept");
                self.files = files;
            }
            Err(error) => tracing::error!(%error, "pictures cannot be kept"),
        }
    }
}

fn write_all(folder: &Path, images: &[Image]) -> (Vec<PathBuf>, io::Result<()>) {
    let mut files = Vec::new();
    let mut write = || {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for (number, image) in (1..).zip(images) {
            let bytes = STANDARD.decode(&image.base64).map_err(io::Error::other)?;
            files.push(write(folder, number, image.mime, &bytes)?);
        }
        Ok(())
    };
    let written = write();
    (files, written)
}

/// Never over a file that is there: the guest may have left one of this name.
fn write(folder: &Path, number: u32, mime: ImageType, bytes: &[u8]) -> io::Result<PathBuf> {
    let ending = ending(mime);
    let names = std::iter::once(format!("image-{number}.{ending}"))
        .chain((1..100).map(|other| format!("image-{number}-{other}.{ending}")));
    for name in names {
        let path = folder.join(name);
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(bytes)?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn ending(mime: ImageType) -> &'static str {
    match mime {
        ImageType::Png => "png",
        ImageType::Jpeg => "jpg",
        ImageType::Gif => "gif",
        ImageType::Webp => "webp",
    }
}

/// Whether it is base64, and begins as such a picture does.
fn is_what_it_says(image: &Image) -> bool {
    STANDARD.decode(&image.base64).is_ok_and(|bytes| ImageType::of(&bytes) == Some(image.mime))
}

#[cfg(test)]
mod tests;
