//! The permissions of an execution, and its owner and principal.

use super::*;
use crate::LogQuery;

#[tokio::test]
async fn allowed_tools_and_grants_are_stored() {
    let (store, _home) = store().await;
    let many: Vec<String> = (0..20_000).map(|number| format!("server.tool{number}")).collect();
    let few: Vec<String> = ["*", "codexec.logs.all"].map(str::to_owned).to_vec();
    let narrow = vec!["github.get_*".to_owned()];
    for (bits, list) in [few, narrow, Vec::new(), many].into_iter().enumerate() {
        let asked = RequestedLimits { allowed_tools: Some(list), ..RequestedLimits::default() };
        let request = AdmissionRequest { asked, ..admitted_request("1") };
        let admitted = policy().admit(request, &[], None).unwrap();
        let id = ExecutionId::from_bits(bits as u128);
        begin_admitted(&store, &id, &admitted, at(0)).await.unwrap();
    }
    let stored =
        async |bits| store.get(&ExecutionId::from_bits(bits), &ALL).await.unwrap().unwrap();
    let lists = |lists: &[&[&str]]| -> Option<Vec<Vec<String>>> {
        Some(lists.iter().map(|list| list.iter().map(|&p| p.to_owned()).collect()).collect())
    };
    assert_eq!(stored(0).await.allowed_tools, lists(&[&["*"]]));
    assert_eq!(stored(0).await.grants, ["logs.all"]);
    assert_eq!(stored(1).await.allowed_tools, lists(&[&["github.get_*"]]));
    assert_eq!(stored(2).await.allowed_tools, lists(&[&[]]));
    let long = stored(3).await.allowed_tools.unwrap().remove(0);
    let left_out = 20_000 - (long.len() - 1);
    assert!((1..20_000).contains(&left_out), "{left_out}");
    assert_eq!(long.last(), Some(&format!("(and {left_out} more)")));
}

#[tokio::test]
async fn own_3_executions_of_other_servers_and_principals_are_excluded() {
    let (first, home) = store().await;
    let (theirs, ours) = (ExecutionId::from_bits(1), ExecutionId::from_bits(2));
    begin(&first, &theirs, "word", at(0)).await.unwrap();
    first.finish(&theirs, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    let second = Store::open(&home.path().join("codexec.db"), Durability::Process).await.unwrap();
    begin(&second, &ours, "word", at(0)).await.unwrap();
    let ended_later = ExecutionId::from_bits(3);
    begin(&first, &ended_later, "word", at(0)).await.unwrap();
    let local = ReadScope::RanHereFor(Identity::LocalUser);
    let ann = ReadScope::RanHereFor(token("ann"));
    let seen = async |scope: &ReadScope, text: Option<&str>| {
        let text = text.map(str::to_owned);
        let query = LogQuery { text, limit: 10, ..LogQuery::default() };
        let page = second.search(&query, scope).await.unwrap();
        let ids: Vec<ExecutionId> = page.results.into_iter().map(|one| one.summary.id).collect();
        assert_eq!(page.total, ids.len() as u64);
        ids
    };
    assert_eq!(seen(&local, None).await, std::slice::from_ref(&ours));
    for (store, id) in [(&second, &ours), (&first, &ended_later)] {
        store.finish(id, finish(RecordEnding::Outcome(&Outcome::Cancelled))).await.unwrap();
    }
    for text in [None, Some("word")] {
        assert_eq!(seen(&local, text).await, std::slice::from_ref(&ours), "{text:?}");
        assert_eq!(seen(&ann, text).await, [], "{text:?}");
    }
    let get = async |id| second.get(id, &local).await.unwrap().is_some();
    assert_eq!(
        (get(&ours).await, get(&theirs).await, get(&ended_later).await),
        (true, false, false)
    );
    assert!(second.get(&ours, &ann).await.unwrap().is_none());
    assert!(second.get(&theirs, &ALL).await.unwrap().is_some());
}
