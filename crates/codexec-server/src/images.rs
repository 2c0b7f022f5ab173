//! The images that a guest emits: counted, checked, and saved as files.

mod blocks;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codexec_files::private_files;
use codexec_types::{Image, ImageType, Outcome};

use self::blocks::without_blocks;

/// Maximum number of images of one execution.
const MAX_IMAGES: usize = 10;
/// Maximum bytes of base64 of all images together: as much as an agent's context can hold.
const MAX_BASE64_BYTES: usize = 8 << 20;

/// The images of one execution.
#[derive(Clone, Debug, Default)]
pub struct Images {
    pub shown: Vec<Image>,
    /// The paths of the saved images of `shown`.
    pub files: Vec<PathBuf>,
    /// Number of images that were too many, or invalid.
    pub left_out: u32,
    /// Includes invalid images, because checking them takes time.
    base64_bytes: usize,
}

impl Images {
    pub(crate) fn push(&mut self, image: Image) {
        let bytes = self.base64_bytes.saturating_add(image.base64.len());
        let has_room = self.shown.len() < MAX_IMAGES && bytes <= MAX_BASE64_BYTES;
        if has_room {
            self.base64_bytes = bytes;
        }
        // A model rejects the whole conversation if a client passes it an invalid image.
        if has_room && has_declared_type(&image) {
            self.shown.push(image);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    /// Moves the images in a returned value to the images of the reply. Only notes stay in the
    /// value: to an agent, binary data is text without a meaning.
    pub(crate) fn take_from(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Returned(value) => {
                let without = without_blocks(&value, self);
                Outcome::Returned(without.unwrap_or(value))
            }
            other => other,
        }
    }

    /// Returns the number of images that the guest emitted, including those left out.
    pub fn count(&self) -> u32 {
        u32::try_from(self.shown.len()).unwrap_or(u32::MAX).saturating_add(self.left_out)
    }

    /// Saves each image in the folder. Images that cannot be saved are still returned.
    pub(crate) async fn save(&mut self, folder: PathBuf) {
        if self.shown.is_empty() {
            return;
        }
        let images = self.shown.clone();
        let writing = tokio::task::spawn_blocking(move || write_all(&folder, &images));
        match writing.await {
            Ok((files, Ok(()))) => self.files = files,
            Ok((files, Err(error))) => {
                tracing::warn!(%error, "an image cannot be saved");
                self.files = files;
            }
            Err(error) => tracing::error!(%error, "images cannot be saved"),
        }
    }
}

fn write_all(folder: &Path, images: &[Image]) -> (Vec<PathBuf>, io::Result<()>) {
    let mut files = Vec::new();
    let mut write = || {
        private_files::make_folder(folder)?;
        for (number, image) in (1..).zip(images) {
            let bytes = STANDARD.decode(&image.base64).map_err(io::Error::other)?;
            files.push(write(folder, number, image.mime, &bytes)?);
        }
        Ok(())
    };
    let written = write();
    (files, written)
}

/// Never overwrites a file: the guest may have left one with this name.
fn write(folder: &Path, number: u32, mime: ImageType, bytes: &[u8]) -> io::Result<PathBuf> {
    let extension = extension(mime);
    let names = std::iter::once(format!("image-{number}.{extension}"))
        .chain((1..100).map(|other| format!("image-{number}-{other}.{extension}")));
    for name in names {
        let path = folder.join(name);
        match private_files::create(&path) {
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

fn extension(mime: ImageType) -> &'static str {
    match mime {
        ImageType::Png => "png",
        ImageType::Jpeg => "jpg",
        ImageType::Gif => "gif",
        ImageType::Webp => "webp",
        ImageType::Wav => "wav",
        ImageType::Mp3 => "mp3",
        ImageType::Ogg => "ogg",
        ImageType::Flac => "flac",
    }
}

/// True if the data is base64, and its first bytes match the declared type.
fn has_declared_type(image: &Image) -> bool {
    STANDARD.decode(&image.base64).is_ok_and(|bytes| ImageType::of(&bytes) == Some(image.mime))
}

#[cfg(test)]
mod tests;
