use super::*;

#[test]
fn what_is_installed_for_everybody_is_there_for_the_next_guest() {
    let index = Served::start();
    let machine = Machine::with(&index, PackageSettings::default());
    block_on(async {
        // A room that stands before the install sees it, too.
        let before = machine
            .run(
                Language::Python,
                "import importlib.util\nimportlib.util.find_spec('good') is None",
            )
            .await;
        assert_eq!(before, "true");
        let installed =
            machine.install(Language::Python, "needs-good", InstallTarget::Everybody).await;
        let installed = installed.expect("installed");
        assert_eq!((installed.package.as_str(), installed.version.as_str()), ("needs-good", "2.0"));
        assert_eq!(pairs(&installed.also), [("good", "1.1")]);
        let code = "import needs_good, good\n[good.VERSION, good.__file__]";
        assert_eq!(
            machine.run(Language::Python, code).await,
            r#"["1.1","/opt/packages/python/good/__init__.py"]"#
        );
        let plant = "open('/opt/packages/python/x', 'w')";
        let planted = machine.run(Language::Python, plant).await;
        assert!(
            planted.contains("Read-only file system") || planted.contains("Permission"),
            "{planted}"
        );

        machine
            .install(Language::Node, "@scope/module", InstallTarget::Everybody)
            .await
            .expect("installed");
        let code = "import it from '@scope/module'; import { createRequire } from 'node:module'; \
                    [it, require('plain'), (await import('plain')).default]";
        assert_eq!(
            machine.run(Language::Node, code).await,
            r#"["module with plain 1","plain 1","plain 1"]"#
        );

        let listed =
            machine.packages.list_installed(Language::Python, InstallTarget::Everybody).await;
        assert_eq!(pairs(&listed.expect("listed")), [("good", "1.1"), ("needs-good", "2.0")]);
        let listed =
            machine.packages.list_installed(Language::Node, InstallTarget::Everybody).await;
        assert_eq!(
            pairs(&listed.expect("listed")),
            [("@scope/module", "0.1.0"), ("plain", "1.0.0")]
        );
    });
}

/// THREAT[PKG-7]: a zygote that imported it would run it before any guest, and for all of them.
#[test]
fn pkg_7_what_is_installed_for_everybody_is_imported_by_guests_only() {
    let index = Served::start();
    let address = PackageIndex::parse(&index.address("simple")).expect("an address");
    let settings = PackageSettings { python_index: Some(address), ..PackageSettings::default() };
    let preload = vec!["good".to_owned(), "json.tool".to_owned()];
    let python = PythonSettings { preload, ..PythonSettings::default() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let machine = Machine::with_python(settings, python, path);
    block_on(async {
        let installed = machine.install(Language::Python, "good", InstallTarget::Everybody).await;
        installed.expect("installed");
        let code = "import sys\n\
                    before = [name in sys.modules for name in ('good', 'json.tool')]\n\
                    import good\n[*before, good.__file__]";
        let expected = r#"[false,true,"/opt/packages/python/good/__init__.py"]"#;
        assert_eq!(machine.run(Language::Python, code).await, expected);
    });
}

#[test]
fn a_package_that_comes_later_goes_together_with_those_that_are_there() {
    let index = Served::start();
    let machine = Machine::with(&index, PackageSettings::default());
    let session = machine.session();
    let target = InstallTarget::Session(&session);
    block_on(async {
        let python = |package| machine.install(Language::Python, package, target);
        python("good==1.0").await.expect("installed");
        let later = python("needs-good").await.expect("installed");
        assert_eq!(pairs(&later.also), [], "the one that was there does");
        let listed = || async {
            let listed = machine.packages.list_installed(Language::Python, target).await;
            listed.expect("listed")
        };
        assert_eq!(pairs(&listed().await), [("good", "1.0"), ("needs-good", "2.0")]);
        let shown = Packages::create_session_folder(&session).expect("made").join("python");
        assert!(shown.join("good/old.py").exists());
        python("good").await.expect("installed");
        assert_eq!(pairs(&listed().await), [("good", "1.1"), ("needs-good", "2.0")]);
        assert!(!shown.join("good/old.py").exists(), "nothing of the old one is left");
        // What is there already gives way to what is asked for.
        python("wants-old").await.expect("installed");
        assert_eq!(
            pairs(&listed().await),
            [("good", "1.0"), ("needs-good", "2.0"), ("wants-old", "1.0")]
        );

        let node = |package| machine.install(Language::Node, package, target);
        node("plain@2").await.expect("installed");
        node("@scope/module").await.expect("installed");
        let listed = machine.packages.list_installed(Language::Node, target).await.expect("listed");
        assert_eq!(pairs(&listed), [("@scope/module", "0.1.0"), ("plain", "2.0.0")]);

        let asked = ["good>=1.0", "good==1.1", "nowhere"];
        let asked = asked.map(|text| PackageName::parse(Language::Python, text).expect("a name"));
        let missing = machine.packages.find_missing(&asked, Some(&session)).await.expect("told");
        assert_eq!(missing, asked[1..]);
        let missing = machine.packages.find_missing(&asked, None).await.expect("told");
        assert_eq!(missing, asked);
    });
    let inside: Vec<PathBuf> =
        std::fs::read_dir(&session).expect("listed").map(|e| e.expect("one").path()).collect();
    assert!(!inside.iter().any(|path| path.ends_with("next")), "{inside:?}");
}
