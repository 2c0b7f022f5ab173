//! From the index that this machine is configured with.

use super::*;

fn machine() -> Machine {
    let usual = PathBuf::from("/etc/ssl/certs/ca-certificates.crt");
    let names = codexec_exec::packages::VARIABLES.iter();
    let environment =
        names.filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    let ca_file = Some(usual).filter(|path| path.is_file());
    Machine::new(Settings { environment, ca_file, ..Settings::default() })
}

#[test]
fn numpy_and_a_pure_package_are_installed_and_used() {
    let machine = machine();
    block_on(async {
        for package in ["six", "numpy"] {
            let installed = machine.install(Language::Python, package, Target::Everybody).await;
            let installed = installed.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(installed.package, package);
            let listed = machine.packages.installed(Language::Python, Target::Everybody).await;
            assert!(listed.expect("listed").contains(&(installed.package, installed.version)));
        }
        let code = "import six, numpy\n[six.PY3, int(numpy.arange(10).sum())]";
        assert_eq!(machine.run(Language::Python, code).await, "[true,45]");
    });
}

#[test]
fn a_package_of_npm_is_installed_and_used() {
    let machine = machine();
    block_on(async {
        let installed = machine.install(Language::Node, "left-pad@1.3.0", Target::Everybody).await;
        let installed = installed.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((installed.package.as_str(), installed.version.as_str()), ("left-pad", "1.3.0"));
        let code = "import leftPad from 'left-pad'; leftPad('7', 3, '0')";
        assert_eq!(machine.run(Language::Node, code).await, r#""007""#);
    });
}
