use super::*;

#[test]
fn pip_config_uses_the_most_specific_section() {
    let output = ":env:.cert='/srv/ca.pem'\nglobal.index-url='https://one.example/simple'\n\
                install.index-url='https://two.example/simple'\n";
    let config = InstallerConfig::parse_pip(output);
    assert_eq!(config.index.as_deref(), Some("https://two.example/simple"));
    assert_eq!(config.certificates.as_deref(), Some(Path::new("/srv/ca.pem")));
    assert_eq!(
        InstallerConfig::parse_pip("nonsense\nglobal.index-url=''\n"),
        InstallerConfig::default()
    );
}

#[test]
fn settings_override_the_installers_config_which_overrides_the_default_index() {
    let settings = PackageSettings::default();
    let config = InstallerConfig {
        index: Some("https://own.example:8443/simple".to_owned()),
        ..InstallerConfig::default()
    };
    let hosts =
        |source: &PackageSource| source.hosts.iter().map(IndexHost::to_string).collect::<Vec<_>>();
    let source = PackageSource::new(Language::Python, &settings, &config).expect("a source");
    assert_eq!(hosts(&source), ["own.example:8443"]);
    let named = PackageSettings {
        python_index: Some(PackageIndex::parse("http://named.example/simple").expect("an index")),
        python_hosts: vec![IndexHost::parse("files.example").expect("a host")],
        ..PackageSettings::default()
    };
    let source = PackageSource::new(Language::Python, &named, &config).expect("a source");
    assert_eq!(hosts(&source), ["files.example:443", "named.example:80"]);
    let public = DefaultIndex {
        index: "https://public.example/simple".into(),
        files: "kept.example".into(),
    };
    let known = InstallerConfig { public: Some(public), ..InstallerConfig::default() };
    let source = PackageSource::new(Language::Python, &settings, &known).expect("a source");
    assert_eq!(hosts(&source), ["public.example:443", "kept.example:443"]);
    let source = PackageSource::new(Language::Python, &named, &known).expect("a source");
    assert_eq!(hosts(&source), ["files.example:443", "named.example:80"], "they are not its files");
    let error = PackageSource::new(Language::Python, &settings, &InstallerConfig::default())
        .expect_err("no index");
    assert!(error.to_string().contains("packages.python-index"), "{error}");
    let odd = InstallerConfig {
        index: Some("file:///srv/wheels".to_owned()),
        ..InstallerConfig::default()
    };
    let error = PackageSource::new(Language::Python, &settings, &odd).expect_err("no web address");
    assert!(error.to_string().contains("packages.python-index"), "{error}");
}

#[test]
fn pkg_6_an_index_with_a_password_and_install_scripts_do_not_go_together() {
    let secret = PackageIndex::parse("https://me:secret@own.example/simple").expect("an index");
    let settings = PackageSettings { python_index: Some(secret), ..PackageSettings::default() };
    assert!(PackageSource::new(Language::Python, &settings, &InstallerConfig::default()).is_ok());
    let both = PackageSettings { install_scripts: true, ..settings };
    let error = PackageSource::new(Language::Python, &both, &InstallerConfig::default())
        .expect_err("refused");
    assert!(!error.to_string().contains("secret"), "{error}");
}
