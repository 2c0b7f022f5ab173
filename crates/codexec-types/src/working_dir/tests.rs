use super::*;

/// `ok`, `forbidden by ...` or `not allowed`.
#[track_caller]
fn check(path: &str, expected: &str) {
    let files = WorkingDirPolicy {
        allowed: vec!["/home/ann/work".into(), "/etc/app".into()],
        forbidden: vec!["/home/ann/work/.secret".into(), "/etc".into()],
        is_writable: true,
        home: None,
    };
    let actual = match files.check(Path::new(path)) {
        Ok(_) => "ok".to_owned(),
        Err(DirRefusal::Forbidden(by)) => format!("forbidden by {}", by.display()),
        Err(DirRefusal::NotAllowed(allowed)) => {
            assert_eq!(allowed, files.allowed);
            "not allowed".to_owned()
        }
    };
    assert_eq!(actual, expected, "{path}");
}

#[test]
fn subdirectories_of_an_allowed_directory_are_allowed() {
    check("/home/ann/work/project", "ok");
    check("/home/ann/work/project/src", "ok");
}

#[test]
fn a_shared_name_prefix_is_not_a_subdirectory() {
    check("/home/ann/workshop", "not allowed");
    check("/home/ann/work.old", "not allowed");
    check("/home/ann/work/.secrets", "ok");
    check("/etcetera", "not allowed");
}

#[test]
fn a_forbidden_directory_is_refused_with_its_parents_and_subdirectories() {
    check("/home/ann/work/.secret", "forbidden by /home/ann/work/.secret");
    check("/home/ann/work/.secret/deep", "forbidden by /home/ann/work/.secret");
    // A parent directory would expose the forbidden one.
    check("/home/ann/work", "forbidden by /home/ann/work/.secret");
    check("/home/ann", "forbidden by /home/ann/work/.secret");
    check("/", "forbidden by /home/ann/work/.secret");
}

#[test]
fn allowed_inside_forbidden_stays_forbidden() {
    check("/etc/app", "forbidden by /etc");
    check("/etc/app/data", "forbidden by /etc");
}

#[test]
fn an_allowed_directory_itself_is_allowed() {
    let files = WorkingDirPolicy { allowed: vec!["/srv".into()], ..WorkingDirPolicy::default() };
    assert_eq!(files.check(Path::new("/srv")), Ok(Path::new("/srv")));
    assert_eq!(files.check(Path::new("/")), Err(DirRefusal::NotAllowed(vec!["/srv".into()])));
}

#[test]
fn nothing_is_allowed_by_default() {
    assert_eq!(
        WorkingDirPolicy::default().check(Path::new("/srv")),
        Err(DirRefusal::NotAllowed(vec![]))
    );
}
