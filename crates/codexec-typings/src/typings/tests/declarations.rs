use super::*;

fn issue() -> Typings {
    let input = json!({
        "$defs": {
            "Node": {"type": "object", "properties": {
                "value": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}, "required": ["value"]},
        },
        "type": "object", "required": ["owner", "tree"],
        "properties": {
            "owner": {"type": "string", "description": "Whose\n it is", "minLength": 1, "maxLength": 39},
            "page": {"type": "integer", "description": "Which one.", "default": 1, "minimum": 1, "maximum": 9_007_199_254_740_991_i64},
            "since": {"type": "string", "format": "date-time"},
            "tree": {"$ref": "#/$defs/Node"},
        },
    });
    let output = json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string", "format": "uri"}, "odd-name": {"type": "null"}}});
    Typings::new(&input, Some(&output))
}

#[test]
fn in_typescript() {
    let expected = "\
interface Node { value: string; children?: Node[] }
declare const tools: { \"my-hub\": {
  /** Makes one. */
  make(args: {
    /** Whose it is; 1 to 39 characters */
    owner: string;
    /** Which one. at least 1, default 1 */
    page?: number;
    /** date-time */
    since?: string;
    tree: Node;
  }): Promise<{
    /** uri */
    url: string;
    \"odd-name\"?: null;
  }>;
} };";
    assert_eq!(
        issue().declaration(TypingsLanguage::TypeScript, "my-hub", "make", "Makes one."),
        expected
    );
}

#[test]
fn in_python() {
    let expected = "\
# await tools.my_hub.make(..)
class Node(TypedDict):
    value: str
    children: NotRequired[list[Node]]
Result = TypedDict(\"Result\", {
    \"url\": str,  # uri
    \"odd-name\": NotRequired[None],
})
async def make(
    *,
    owner: str,  # Whose it is; 1 to 39 characters
    page: int = 1,  # Which one. at least 1
    since: str = ...,  # date-time
    tree: Node,
) -> Result:
    \"\"\"Makes one.\"\"\"";
    assert_eq!(
        issue().declaration(TypingsLanguage::Python, "my-hub", "make", "Makes one."),
        expected
    );
}

#[test]
fn in_bash() {
    let expected = "\
mcp my-hub make
  --owner <string>, required; Whose it is; 1 to 39 characters
  --page <number>; Which one. at least 1, default 1
  --since <string>; date-time
  --tree <{ value: string; children?: unknown[] }>, required
returns: { url: string; \"odd-name\"?: null }";
    assert_eq!(issue().declaration(TypingsLanguage::Bash, "my-hub", "make", ""), expected);
}

#[test]
fn a_tool_without_schemas() {
    let types = Typings::new(&json!({}), None);
    assert_eq!(
        types.declaration(TypingsLanguage::TypeScript, "s", "t", ""),
        "declare const tools: { s: {\n  t(): Promise<unknown>;\n} };"
    );
    assert_eq!(
        types.declaration(TypingsLanguage::Python, "s", "3d", ""),
        "# await tools.s[\"3d\"](..)\nasync def _3d() -> Any: ..."
    );
    let seen = types.with_observed(&json!({"type": "string"}));
    assert_eq!(
        seen.declaration(TypingsLanguage::Python, "s", "t", ""),
        "# await tools.s.t(..)\nasync def t() -> str: ...  # observed"
    );
}

#[test]
fn a_long_declaration_is_shortened_and_marked() {
    let field = |n: usize| {
        (format!("field_{n}"), json!({"type": "string", "description": "x".repeat(200)}))
    };
    let fields =
        |count| json!({"properties": (0..count).map(field).collect::<serde_json::Map<_, _>>()});
    let written =
        |count, voice| Typings::new(&fields(count), None).declaration(voice, "s", "t", "");
    for voice in [TypingsLanguage::TypeScript, TypingsLanguage::Python] {
        let few = written(10, voice);
        assert!(few.contains(&"x".repeat(200)) && !few.contains("shortened"), "{few}");
        // Comments are dropped first, without a mark.
        let more = written(60, voice);
        assert!(more.contains("field_59") && !more.contains("shortened"), "{more}");
        let most = written(190, voice);
        assert!(most.contains("shortened: the schemas have the rest"), "{most}");
        assert!(most.len() <= crate::detail::BUDGET_BYTES);
    }
}
