use std::net::TcpListener;

use codexec_exec::packages::PackagePattern;

use super::*;

fn patterns(texts: &[&str]) -> Vec<PackagePattern> {
    texts.iter().map(|text| PackagePattern::parse(text).expect("a pattern")).collect()
}

#[test]
fn each_failure_has_its_own_words() {
    let index = Served::start();
    let machine = Machine::with(
        &index,
        PackageSettings { deny: patterns(&["npm:plain"]), ..PackageSettings::default() },
    );
    let session = machine.session();
    let cases = [
        (Language::Python, "nobody-has-this", "PACKAGE_UNKNOWN", "nobody-has-this"),
        (Language::Python, "good==9.9", "PACKAGE_VERSION_UNKNOWN", "==9.9"),
        (Language::Python, "tattle==1.0", "PACKAGE_NEEDS_BUILD", "install-scripts"),
        (Language::Python, "elsewhere", "INDEX_HOST_REFUSED", "packages.python-hosts"),
        (Language::Node, "nobody-has-this", "PACKAGE_UNKNOWN", "nobody-has-this"),
        (Language::Node, "tattle@9.9.9", "PACKAGE_VERSION_UNKNOWN", "9.9.9"),
        (Language::Node, "plain", "PACKAGE_DENIED", "packages.deny"),
        (Language::Node, "@scope/module", "PACKAGE_DENIED", "brings plain along"),
    ];
    block_on(async {
        for (language, package, code, words) in cases {
            let error = machine.install(language, package, InstallTarget::Session(&session)).await;
            let error = error.expect_err(package);
            assert_eq!(error.code(), code, "{package}: {error:?}");
            assert!(error.to_string().contains(words), "{package}: {error:?}");
        }
        for language in [Language::Python, Language::Node] {
            let listed =
                machine.packages.list_installed(language, InstallTarget::Session(&session)).await;
            assert_eq!(listed.expect("listed"), []);
        }
    });
    index.check_untouched();
}

#[test]
fn an_index_that_is_not_there_is_named() {
    // Bound and closed again: nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("bound").port();
    let address = |path: &str| {
        PackageIndex::parse(&format!("http://127.0.0.1:{port}/{path}")).expect("an address")
    };
    let machine = Machine::new(PackageSettings {
        python_index: Some(address("simple")),
        npm_registry: Some(address("npm/")),
        ..PackageSettings::default()
    });
    let session = machine.session();
    block_on(async {
        for (language, setting) in
            [(Language::Python, "packages.python-index"), (Language::Node, "packages.npm-registry")]
        {
            let error = machine.install(language, "good", InstallTarget::Session(&session)).await;
            let error = error.expect_err("nobody is there");
            assert_eq!(error.code(), "INDEX_UNREACHABLE", "{error}");
            let text = error.to_string();
            assert!(
                text.contains(&format!("127.0.0.1:{port}")) && text.contains(setting),
                "{text}"
            );
        }
    });
}

#[test]
fn an_install_ends_when_its_time_is_up_and_when_nobody_wants_it_any_more() {
    // Takes connections and never says anything.
    let silent = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = format!("http://{}/simple", silent.local_addr().expect("bound"));
    let index = Some(PackageIndex::parse(&address).expect("an address"));
    let settings = PackageSettings { python_index: index, ..PackageSettings::default() };
    let short = PackageSettings { timeout: Duration::from_secs(3), ..settings.clone() };
    block_on(async {
        let machine = Machine::new(short);
        let session = machine.session();
        let error =
            machine.install(Language::Python, "good", InstallTarget::Session(&session)).await;
        assert_eq!(error.expect_err("too slow").code(), "INSTALL_TIMEOUT");

        let machine = Machine::new(settings);
        let cancel = CancellationToken::new();
        let session = machine.session();
        let package = PackageName::parse(Language::Python, "good").expect("a name");
        let install =
            machine.packages.install(&package, InstallTarget::Session(&session), |_| {}, &cancel);
        let give_up = async {
            // Its first connection tells that it is under way.
            let silent = tokio::task::spawn_blocking(move || silent.accept().map(drop));
            silent.await.expect("waited").expect("accepted");
            cancel.cancel();
        };
        let (error, ()) = tokio::join!(install, give_up);
        assert_eq!(error.expect_err("cancelled").code(), "INSTALL_CANCELLED");
    });
}
