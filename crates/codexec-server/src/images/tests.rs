use std::os::unix::fs::PermissionsExt as _;

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and the rest";

fn image(mime: ImageType, bytes: &[u8]) -> Image {
    Image { mime, base64: STANDARD.encode(bytes) }
}

fn push_all(all: impl IntoIterator<Item = Image>) -> (usize, u32) {
    let mut images = Images::default();
    for image in all {
        images.push(image);
    }
    (images.shown.len(), images.left_out)
}

#[test]
fn at_most_ten_images_are_returned_and_the_rest_is_counted() {
    assert_eq!(push_all((0..13).map(|_| image(ImageType::Png, PNG))), (10, 3));
}

#[test]
fn the_total_size_is_limited() {
    let of = |bytes: usize| {
        let mut png = PNG.to_vec();
        png.resize(bytes, 0);
        image(ImageType::Png, &png)
    };
    assert_eq!(push_all([of(5 << 20), of(5 << 20), of(10)]), (2, 1));
    assert_eq!(push_all([of(9 << 20)]), (0, 1));
    // Checking an invalid image costs as much.
    let junk = || Image { mime: ImageType::Png, base64: "x".repeat(5 << 20) };
    assert_eq!(push_all([junk(), of(5 << 20), of(10)]), (1, 2));
}

#[test]
fn invalid_images_are_left_out() {
    assert_eq!(push_all([image(ImageType::Jpeg, b"\xff\xd8\xff\xe0")]), (1, 0));
    assert_eq!(push_all([image(ImageType::Gif, b"GIF89a...")]), (1, 0));
    assert_eq!(push_all([image(ImageType::Webp, b"RIFF\0\0\0\0WEBPVP8 ")]), (1, 0));
    assert_eq!(push_all([image(ImageType::Webp, b"RIFF\0\0\0\0WAVEfmt ")]), (0, 1));
    assert_eq!(push_all([image(ImageType::Wav, b"RIFF\0\0\0\0WAVEfmt ")]), (1, 0));
    assert_eq!(
        push_all([image(ImageType::Mp3, b"ID3\x04"), image(ImageType::Ogg, b"OggS")]),
        (2, 0)
    );
    assert_eq!(push_all([image(ImageType::Jpeg, PNG)]), (0, 1));
    assert_eq!(push_all([image(ImageType::Png, b"")]), (0, 1));
    let not_base64 = Image { mime: ImageType::Png, base64: "<script>".to_owned() };
    assert_eq!(push_all([not_base64]), (0, 1));
}

#[tokio::test]
async fn each_image_is_saved_as_its_own_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().join("exec_1");
    std::fs::create_dir(&folder).expect("made");
    // Files that a guest may have left.
    std::fs::write(folder.join("image-1.png"), "mine").expect("written");
    std::os::unix::fs::symlink("/nowhere", folder.join("image-2.gif")).expect("made");
    let mut images = Images::default();
    images.push(image(ImageType::Png, PNG));
    images.push(image(ImageType::Gif, b"GIF89a"));
    images.save(folder.clone()).await;
    assert_eq!(images.files, [folder.join("image-1-1.png"), folder.join("image-2-1.gif")]);
    assert_eq!(std::fs::read(&images.files[0]).expect("read"), PNG);
    assert_eq!(std::fs::read_to_string(folder.join("image-1.png")).expect("read"), "mine");
}

#[tokio::test]
async fn the_folder_is_private_and_only_created_when_needed() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().join("artifacts/exec_1");
    Images::default().save(folder.clone()).await;
    assert!(!folder.exists());
    let mut images = Images::default();
    images.push(image(ImageType::Png, PNG));
    images.save(folder.clone()).await;
    for path in [folder.clone(), dir.path().join("artifacts")] {
        assert_eq!(std::fs::metadata(path).expect("there").permissions().mode() & 0o777, 0o700);
    }
    let mode = std::fs::metadata(&images.files[0]).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
