use super::*;
use crate::packages::address::PackageIndex;
use crate::packages::proxy::ProxyRoute;

fn package(language: Language, text: &str) -> PackageName {
    PackageName::parse(language, text).expect("a name")
}

fn source() -> PackageSource {
    PackageSource {
        index: PackageIndex::parse("https://index.example/simple").expect("an index"),
        hosts: Vec::new(),
        certificates: Some(PathBuf::from("/srv/ca.pem")),
        route: ProxyRoute::default(),
        index_setting: "",
        hosts_setting: "",
    }
}

fn arguments(tool: &InstallerKind, package: &PackageName, runs_scripts: bool) -> Vec<String> {
    let source = source();
    let request = InstallRequest {
        package,
        others: Vec::new(),
        is_constrained: false,
        runs_scripts,
        source: &source,
    };
    let command = tool.install_command(&request);
    let names: Vec<&str> = command.environment.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.iter().all(|name| !name.starts_with("PIP_")), "{names:?}");
    command.arguments
}

#[test]
fn pkg_4_nothing_is_built_or_run_unless_it_is_allowed() {
    let (python, node) = (PathBuf::from("/usr/bin/python3"), PathBuf::from("/usr/bin/node"));
    let pip = InstallerKind::Pip { python: python.clone() };
    let uv = InstallerKind::Uv { python, uv: PathBuf::from("/usr/bin/uv") };
    let npm = InstallerKind::Npm { node, npm: PathBuf::from("/usr/bin/npm-cli.js") };
    let six = package(Language::Python, "six");
    for tool in [&pip, &uv] {
        let has = |arguments: Vec<String>| {
            arguments.windows(2).any(|two| two == ["--only-binary", ":all:"])
        };
        assert!(has(arguments(tool, &six, false)));
        assert!(!has(arguments(tool, &six, true)));
    }
    let pad = package(Language::Node, "left-pad@1");
    let has = |arguments: Vec<String>| arguments.contains(&"--ignore-scripts".to_owned());
    assert!(has(arguments(&npm, &pad, false)));
    assert!(!has(arguments(&npm, &pad, true)));
    for (tool, package) in [(&pip, &six), (&uv, &six), (&npm, &pad)] {
        let arguments = arguments(tool, package, false);
        assert_eq!(
            arguments.get(arguments.len() - 2..),
            Some(&["--".to_owned(), package.as_str().to_owned()][..])
        );
    }
}

#[test]
fn pip_errors_are_classified_by_package_name() {
    let six = package(Language::Python, "six==99");
    let pip = |text: &str| pip::classify_failure(text, &six);
    let none = "ERROR: Could not find a version that satisfies the requirement six==99 (from versions: none)\nERROR: No matching distribution found for six==99\n";
    assert_eq!(pip(none), InstallFailure::NotFound);
    assert_eq!(pip(&none.replace("none", "1.0, 1.1")), InstallFailure::NoVersion);
    assert_eq!(pip(&none.replace("six", "other")), InstallFailure::Other);
    assert_eq!(pip("ERROR: ResolutionImpossible: for help visit"), InstallFailure::Conflict);
    assert_eq!(pip("Killed"), InstallFailure::Other);
    assert!(is_offered("six (1.16.0)\nAvailable versions: 1.16.0, 1.15.0\n", "1.15.0"));
    assert!(!is_offered("Available versions: 1.16.0\n", "1.16"));
}

#[test]
fn npm_errors_are_classified_by_code() {
    let pad = package(Language::Node, "@a/pad@9");
    let npm = |code: &str, summary: &str| {
        let said = serde_json::json!({"error": {"code": code, "summary": summary, "detail": ""}});
        npm::classify_failure(&format!("\n{said}\n"), &pad)
    };
    assert_eq!(
        npm("E404", "Not Found - GET https://x/@a%2fpad - Not found"),
        InstallFailure::NotFound
    );
    assert_eq!(
        npm("ETARGET", "No matching version found for @a/pad@9."),
        InstallFailure::NoVersion
    );
    assert_eq!(npm("E404", "Not Found - GET https://x/other"), InstallFailure::Other);
    assert_eq!(npm("ERESOLVE", "could not resolve"), InstallFailure::Conflict);
    assert_eq!(npm::classify_failure("not json", &pad), InstallFailure::Other);
}
