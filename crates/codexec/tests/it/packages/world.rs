//! From the index that this machine is configured with.

use super::*;

fn settings() -> PackageSettings {
    let usual = PathBuf::from("/etc/ssl/certs/ca-certificates.crt");
    let names = codexec_exec::packages::ENVIRONMENT_VARIABLES.iter();
    let environment =
        names.filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    let ca_file = Some(usual).filter(|path| path.is_file());
    PackageSettings { environment, ca_file, ..PackageSettings::default() }
}

#[test]
fn numpy_and_a_pure_package_are_installed_and_used() {
    let machine = Machine::new(settings());
    block_on(async {
        for package in ["six", "numpy"] {
            let installed =
                machine.install(Language::Python, package, InstallTarget::Everybody).await;
            let installed = installed.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(installed.package, package);
            let listed =
                machine.packages.list_installed(Language::Python, InstallTarget::Everybody).await;
            assert!(listed.expect("listed").contains(&(installed.package, installed.version)));
        }
        let code = "import six, numpy\n[six.PY3, int(numpy.arange(10).sum())]";
        assert_eq!(machine.run(Language::Python, code).await, "[true,45]");
    });
}

#[test]
fn a_package_of_npm_is_installed_and_used() {
    let machine = Machine::new(settings());
    block_on(async {
        let installed =
            machine.install(Language::Node, "left-pad@1.3.0", InstallTarget::Everybody).await;
        let installed = installed.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((installed.package.as_str(), installed.version.as_str()), ("left-pad", "1.3.0"));
        let code = "import leftPad from 'left-pad'; leftPad('7', 3, '0')";
        assert_eq!(machine.run(Language::Node, code).await, r#""007""#);
    });
}

#[test]
fn uv_installs_where_there_is_no_pip() {
    // By our own means, so that it need not be on this machine.
    let machine = Machine::new(settings());
    let session = machine.session();
    let installed =
        block_on(machine.install(Language::Python, "uv", InstallTarget::Session(&session)));
    installed.unwrap_or_else(|error| panic!("{error}"));
    let tools = Packages::create_session_folder(&session).expect("made").join("python/bin");
    let venv = machine.home.path().join("venv");
    let made = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip"])
        .arg(&venv)
        .status();
    assert!(made.expect("python3").success());

    let index = Served::start();
    let address = PackageIndex::parse(&index.address("simple")).expect("an address");
    let settings = PackageSettings { python_index: Some(address), ..PackageSettings::default() };
    let python = PythonSettings { venv: Some(venv), ..PythonSettings::default() };
    let alone = Machine::with_python(settings.clone(), python.clone(), OsString::new());
    let machine = Machine::with_python(settings, python, tools.into_os_string());
    block_on(async {
        let error = alone.install(Language::Python, "good", InstallTarget::Everybody).await;
        assert_eq!(error.expect_err("no installer").code(), "INSTALLER_UNAVAILABLE");
        let installed =
            machine.install(Language::Python, "needs-good", InstallTarget::Everybody).await;
        let installed = installed.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(pairs(&installed.also), [("good", "1.1")]);
        assert_eq!(machine.run(Language::Python, "import good\ngood.VERSION").await, "\"1.1\"");
        for (package, code) in [
            ("nobody-has-this", "PACKAGE_UNKNOWN"),
            ("good==9.9", "PACKAGE_VERSION_UNKNOWN"),
            ("elsewhere", "INDEX_HOST_REFUSED"),
        ] {
            let error = machine.install(Language::Python, package, InstallTarget::Everybody).await;
            let error = error.expect_err(package);
            assert_eq!(error.code(), code, "{package}: {error}");
        }
    });
    index.check_untouched();
}
