/// Replaces `${VAR}` and `${VAR:-default}`. A variable that is not set and has no default stays
/// as written, and its name is added to `unset`.
pub(super) fn expand(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
    unset: &mut Vec<String>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            out.push_str("${");
            out.push_str(after);
            return out;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        match env(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => {
                out.push_str("${");
                out.push_str(inside);
                out.push('}');
                unset.push(name.to_owned());
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}
