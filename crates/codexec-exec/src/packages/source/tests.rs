use super::*;

#[test]
fn pips_own_settings_are_read_nearest_first() {
    let said = ":env:.cert='/srv/ca.pem'\nglobal.index-url='https://one.example/simple'\n\
                install.index-url='https://two.example/simple'\n";
    let asked = Asked::read_pip(said);
    assert_eq!(asked.index.as_deref(), Some("https://two.example/simple"));
    assert_eq!(asked.certificates.as_deref(), Some(Path::new("/srv/ca.pem")));
    assert_eq!(Asked::read_pip("nonsense\nglobal.index-url=''\n"), Asked::default());
}

#[test]
fn settings_come_before_what_the_installer_has_and_that_before_the_public_index() {
    let settings = Settings::default();
    let asked =
        Asked { index: Some("https://own.example:8443/simple".to_owned()), ..Asked::default() };
    let hosts = |source: &Source| source.hosts.iter().map(Host::to_string).collect::<Vec<_>>();
    let source = Source::new(Language::Python, &settings, &asked).expect("a source");
    assert_eq!(hosts(&source), ["own.example:8443"]);
    let named = Settings {
        python_index: Some(Index::parse("http://named.example/simple").expect("an index")),
        python_hosts: vec![Host::parse("files.example").expect("a host")],
        ..Settings::default()
    };
    let source = Source::new(Language::Python, &named, &asked).expect("a source");
    assert_eq!(hosts(&source), ["files.example:443", "named.example:80"]);
    let public =
        Public { index: "https://public.example/simple".into(), files: "kept.example".into() };
    let known = Asked { public: Some(public), ..Asked::default() };
    let source = Source::new(Language::Python, &settings, &known).expect("a source");
    assert_eq!(hosts(&source), ["public.example:443", "kept.example:443"]);
    let source = Source::new(Language::Python, &named, &known).expect("a source");
    assert_eq!(hosts(&source), ["files.example:443", "named.example:80"], "they are not its files");
    let error = Source::new(Language::Python, &settings, &Asked::default()).expect_err("no index");
    assert!(error.to_string().contains("packages.python-index"), "{error}");
    let odd = Asked { index: Some("file:///srv/wheels".to_owned()), ..Asked::default() };
    let error = Source::new(Language::Python, &settings, &odd).expect_err("no web address");
    assert!(error.to_string().contains("packages.python-index"), "{error}");
}

#[test]
fn pkg_6_an_index_with_a_password_and_install_scripts_do_not_go_together() {
    let secret = Index::parse("https://me:secret@own.example/simple").expect("an index");
    let settings = Settings { python_index: Some(secret), ..Settings::default() };
    assert!(Source::new(Language::Python, &settings, &Asked::default()).is_ok());
    let both = Settings { install_scripts: true, ..settings };
    let error = Source::new(Language::Python, &both, &Asked::default()).expect_err("refused");
    assert!(!error.to_string().contains("secret"), "{error}");
}
