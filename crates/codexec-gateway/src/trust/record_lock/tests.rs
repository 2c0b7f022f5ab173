use super::*;

#[tokio::test]
async fn one_writer_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file.json");
    let first = acquire(&path).await.expect("free");
    let mut second = std::pin::pin!(acquire(&path));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    second.await.expect("free again");
}
