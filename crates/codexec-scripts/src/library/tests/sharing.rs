//! Several servers that share one folder.

use super::*;

#[tokio::test]
async fn a_script_that_one_server_saves_another_finds_immediately() {
    let kit = Kit::new();
    let first = Library::at(kit.path(""));
    let second = Library::at(kit.path(""));
    for number in 0..5 {
        let name = format!("s{number}");
        first.save(draft(&name, "1")).await.unwrap();
        assert_eq!(second.list(all()).await.unwrap().total, number + 1);
        assert_eq!(second.get(&name, None).await.unwrap().version, 1);
    }
    second.delete("s3").await.unwrap();
    assert_eq!(first.list(all()).await.unwrap().total, 4);
    let notes = [first.list(all()).await.unwrap().notes, second.list(all()).await.unwrap().notes];
    assert_eq!(notes, [Vec::<String>::new(), Vec::new()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_saves_lose_nothing() {
    const WRITERS: u32 = 4;
    const SAVES: u32 = 10;
    let kit = Kit::new();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let library = Library::at(kit.path(""));
            tokio::spawn(async move {
                for save in 0..SAVES {
                    let own = draft(&format!("own-{writer}-{save}"), "1");
                    library.save(own).await.unwrap();
                    let code = format!("{writer} {save}");
                    library.save(draft("shared", &code)).await.unwrap();
                    library.record_run("shared", SystemTime::UNIX_EPOCH, true).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let shared = kit.library.get("shared", None).await.unwrap();
    assert_eq!(shared.version, WRITERS * SAVES);
    assert_eq!(shared.meta.run_count, u64::from(WRITERS * SAVES));
    let mut codes = Vec::new();
    for version in 1..=shared.version {
        codes.push(kit.code("shared", Some(version)).await);
    }
    codes.sort();
    codes.dedup();
    assert_eq!(codes.len() as u32, WRITERS * SAVES);
    let (names, notes) = kit.list().await;
    assert_eq!((names.len() as u32, notes), (WRITERS * SAVES + 1, Vec::new()));
    let indexed = kit.json("index.json")["scripts"].as_array().unwrap().len();
    assert_eq!(indexed as u32, WRITERS * SAVES + 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_never_released_is_an_error() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    let held = codexec_files::FileLock::acquire(&kit.path(".lock")).unwrap();
    let err = kit.library.save(draft("s", "2")).await.unwrap_err();
    assert_eq!(err.code(), "SCRIPT_LIBRARY_BUSY");
    assert_eq!(kit.code("s", None).await, "1");
    drop(held);
    assert_eq!(kit.save("s", "2").await.version, 2);
}

#[tokio::test]
async fn a_save_whose_caller_is_dropped_is_atomic() {
    let kit = Kit::new();
    kit.save("s", "1").await;
    for number in 0..20 {
        let code = format!("code {number}");
        let mut save = Box::pin(kit.library.save(draft("s", &code)));
        // Polled a few times, and dropped.
        for _ in 0..number {
            if poll_once(&mut save).await {
                break;
            }
        }
        drop(save);
        let script = kit.library.get("s", None).await.unwrap();
        assert_eq!(kit.code("s", Some(script.version)).await, script.code);
    }
    assert_eq!(kit.list().await, (vec!["s".to_owned()], Vec::new()));
}

/// Polls a future once. Returns true if it is ready.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> bool {
    tokio::select! {
        biased;
        _ = future => true,
        () = tokio::task::yield_now() => false,
    }
}
