//! Two identities in one database: no query shows the rows of the other one.

use std::slice;

use codexec_types::SessionId;

use super::*;
use crate::{LogQuery, SessionQuery, SessionStart};

/// A database in which the local user and a token have run one execution each, with the same words.
struct Shared {
    store: Store,
    local: ExecutionId,
    ann: ExecutionId,
    _home: TempDir,
}

pub(crate) fn ann() -> Principal {
    Principal::new(token("ann"), Edge::Http)
}

fn local_scope() -> ReadScope {
    ReadScope::Of(Identity::LocalUser)
}

fn ann_scope() -> ReadScope {
    ReadScope::Of(token("ann"))
}

impl Shared {
    /// Creates the database; `is_ended` tells whether the executions have ended.
    async fn new(is_ended: bool) -> Shared {
        let (store, home) = store().await;
        let (local_id, ann_id) = (ExecutionId::from_bits(1), ExecutionId::from_bits(2));
        for (id, principal) in [(&local_id, local()), (&ann_id, ann())] {
            begin_by(&store, id, &admitted("word"), (at(0), &principal)).await.unwrap();
            if is_ended {
                store.finish(id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
            }
        }
        Shared { store, local: local_id, ann: ann_id, _home: home }
    }

    async fn found(&self, text: Option<&str>, scope: &ReadScope) -> Vec<ExecutionId> {
        let query = LogQuery { text: text.map(str::to_owned), limit: 10, ..LogQuery::default() };
        let page = self.store.search(&query, scope).await.unwrap();
        assert_eq!(page.total, page.results.len() as u64);
        page.results.into_iter().map(|found| found.summary.id).collect()
    }
}

#[tokio::test]
async fn searches_find_only_executions_of_the_same_identity() {
    let running = Shared::new(false).await;
    assert_eq!(running.found(None, &local_scope()).await, slice::from_ref(&running.local));
    assert_eq!(running.found(None, &ann_scope()).await, slice::from_ref(&running.ann));
    assert_eq!(running.found(None, &ALL).await.len(), 2);
    let ended = Shared::new(true).await;
    for text in [None, Some("word")] {
        assert_eq!(
            ended.found(text, &local_scope()).await,
            slice::from_ref(&ended.local),
            "{text:?}"
        );
        assert_eq!(ended.found(text, &ann_scope()).await, slice::from_ref(&ended.ann), "{text:?}");
        assert_eq!(ended.found(text, &ReadScope::Of(token("an-n"))).await, [], "{text:?}");
        assert_eq!(ended.found(text, &ALL).await.len(), 2, "{text:?}");
    }
}

#[tokio::test]
async fn other_queries_show_only_executions_of_the_same_identity() {
    let Shared { store, local, ann, _home } = Shared::new(true).await;
    for (scope, own, other) in [(local_scope(), &local, &ann), (ann_scope(), &ann, &local)] {
        assert_eq!(store.get(own, &scope).await.unwrap().unwrap().summary.id, *own);
        assert!(store.get(other, &scope).await.unwrap().is_none());
        assert!(store.contains(own, &scope).await.unwrap());
        assert!(!store.contains(other, &scope).await.unwrap());
        let recent = store.list_recent(9, &scope).await.unwrap();
        assert_eq!(recent.iter().map(|one| &one.id).collect::<Vec<_>>(), [own]);
        let counts = ExecutionCounts { running: 0, total: 1 };
        assert_eq!(store.count_executions(&scope).await.unwrap(), counts);
    }
    let counts = ExecutionCounts { running: 0, total: 2 };
    assert_eq!(store.count_executions(&ALL).await.unwrap(), counts);
    let stored = store.get(&ann, &ALL).await.unwrap().unwrap();
    assert_eq!((stored.identity, stored.edge), (Some(token("ann")), Some(Edge::Http)));
}

#[tokio::test]
async fn the_same_identity_sees_its_executions_over_all_edges() {
    let (store, _home) = store().await;
    for (bits, edge) in (1..).zip(Edge::ALL) {
        let principal = Principal::new(Identity::LocalUser, edge);
        let id = ExecutionId::from_bits(bits);
        begin_by(&store, &id, &admitted("1"), (at(0), &principal)).await.unwrap();
        let stored = store.get(&id, &local_scope()).await.unwrap().unwrap();
        assert_eq!(stored.edge, Some(edge));
    }
}

#[tokio::test]
async fn sessions_are_listed_for_the_same_identity_only() {
    let (store, _home) = store().await;
    let context = RequestOrigin::default();
    let (first, second) = (SessionId::from_bits(1), SessionId::from_bits(2));
    for (id, principal) in [(&first, local()), (&second, ann())] {
        let start = SessionStart {
            id,
            principal: &principal,
            language: Language::Python,
            name: None,
            pid: None,
            working_dir: None,
            context: &context,
            at: at(0),
        };
        store.begin_session(&start).await.unwrap();
    }
    let list = async |only: Option<Vec<SessionId>>, scope: &ReadScope| {
        let found = store.list_sessions(SessionQuery { only, limit: 9 }, scope).await.unwrap();
        found.into_iter().map(|session| session.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, &local_scope()).await, slice::from_ref(&first));
    assert_eq!(list(None, &ann_scope()).await, slice::from_ref(&second));
    assert_eq!(list(None, &ALL).await, [second.clone(), first.clone()]);
    assert_eq!(
        list(Some(vec![first.clone(), second]), &local_scope()).await,
        slice::from_ref(&first)
    );
    assert_eq!(list(Some(vec![first]), &ann_scope()).await, []);
}
