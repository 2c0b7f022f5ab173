use super::*;

#[test]
fn a_session_sees_its_own_packages_from_the_moment_they_are_there() {
    let index = Served::start();
    let machine = Machine::with(&index, PackageSettings::default());
    let (python, node) = (Language::Python, Language::Node);
    let session = machine.session();
    let target = InstallTarget::Session(&session);
    block_on(async {
        let mut run = machine.open(python).await;
        let missing = cell(&mut run, 1, python, "import good").await;
        assert!(missing.contains("No module named 'good'"), "{missing}");
        machine.install(python, "needs-good", target).await.expect("installed");
        let code = "import needs_good, good\n[good.VERSION, good.__file__]";
        let found = cell(&mut run, 2, python, code).await;
        assert_eq!(found, r#"["1.1","/box/packages/python/good/__init__.py"]"#);
        let planted = cell(&mut run, 3, python, "open('/box/packages/python/x', 'w')").await;
        assert!(planted.contains("Read-only") || planted.contains("Permission"), "{planted}");

        let mut other = machine.open(node).await;
        machine.install(node, "@scope/module", target).await.expect("installed");
        let code = "const { default: it } = await import('@scope/module'); [it, require('plain')]";
        let found = cell(&mut other, 1, node, code).await;
        assert_eq!(found, r#"["module with plain 1","plain 1"]"#);

        // Nobody else does.
        let code = "import importlib.util\nimportlib.util.find_spec('good') is None";
        assert_eq!(machine.run(python, code).await, "true");
        let outside = machine.run(node, "await import('plain')").await;
        assert!(outside.contains("Cannot find package"), "{outside}");
    });
}

#[test]
fn two_installs_into_one_session_both_come_to_pass() {
    let index = Served::start();
    let machine = Machine::with(&index, PackageSettings::default());
    let session = machine.session();
    let target = InstallTarget::Session(&session);
    block_on(async {
        let install = |package| machine.install(Language::Python, package, target);
        let (one, two) = tokio::join!(install("good"), install("big"));
        one.expect("installed");
        two.expect("installed");
        let listed =
            machine.packages.list_installed(Language::Python, target).await.expect("listed");
        assert_eq!(pairs(&listed), [("big", "1.0"), ("good", "1.1")]);
    });
}
