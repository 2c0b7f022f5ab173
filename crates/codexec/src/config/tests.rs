use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let file: File = match toml::from_str(text) {
        Ok(file) => file,
        Err(error) => return assert_eq!(format!("error: {}", error.message()), expected),
    };
    let actual = match Config::new(&file, 2) {
        Ok(config) => {
            let Limits { wall, memory_bytes, .. } = config.policy.limits;
            let (max, warm) = (config.max_workers, config.warm_workers);
            format!("{wall:?} {} MiB x{max} ~{warm} -{:?}", memory_bytes >> 20, config.lowered)
        }
        Err(error) => format!("error: {error}"),
    };
    assert_eq!(actual, expected);
}

#[test]
fn settings() {
    check("", "30s 256 MiB x16 ~4 -[]");
    check("[limits]\ntimeout-ms = 5\nmemory-mib = 64", "5ms 64 MiB x16 ~4 -[]");
    check("[workers]\nmax = 2", "30s 256 MiB x2 ~2 -[]");
    check("[sandbox]\nlowered = ['landlock']", "30s 256 MiB x16 ~4 -[Landlock]");
}

#[test]
fn wrong_settings_say_how_to_write_them() {
    check("[workers]\nmax = 0", "error: `workers.max = 0` is out of range; it must be 1 to 1024");
    check(
        "[limits]\ntimeout-ms = 300001",
        "error: `limits.timeout-ms = 300001` is out of range; it must be 1 to 300000",
    );
    check(
        "[sandbox]\nlowered = ['walls']",
        "error: `sandbox.lowered` names \"walls\"; the layers are user, pid, mount, network, ipc, \
         uts, cgroup-namespace, root, landlock, capabilities, no-new-privileges, rlimits, seccomp, cgroup",
    );
    check(
        "colour = 1",
        "error: unknown field `colour`, expected one of `limits`, `sandbox`, `workers`, `tools`",
    );
    check("[tools]\nallowed = ['github']", "error: `tools.allowed`");
}

#[test]
fn the_example_file_says_the_defaults() {
    let text = include_str!("../../../../docs/examples/config.toml");
    let named: File = toml::from_str(text).expect("the example is valid");
    let (named, default) = (Config::new(&named, 2), Config::new(&File::default(), 2));
    assert_eq!(format!("{:?}", named.expect("valid")), format!("{:?}", default.expect("valid")));
}
