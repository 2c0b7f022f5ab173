//! One value against one schema, keyword by keyword, in the order of the schema.

mod array;
mod object;
mod scalar;

use serde_json::{Map, Value};

use crate::{
    compare::equal,
    evaluated::Evaluated,
    pattern::Patterns,
    problem::{Step, quote, render_place, show, show_rule},
};

/// Levels of schema inside schema, with every reference followed. Real ones have a dozen.
const DEPTH: usize = 160;
const SHOWN_PROBLEMS: usize = 5;
/// A longer reference is not followed.
const REFERENCE_BYTES: usize = 1 << 10;

/// The steps that are left.
#[derive(Debug)]
pub(crate) struct Budget(u64);

/// The budget is used up, or the depth.
#[derive(Debug)]
pub(crate) struct TooMuch;

pub(crate) struct Walk<'s, 'v, 'c> {
    root: &'s Value,
    patterns: &'c Patterns,
    pub(crate) budget: Budget,
    depth: usize,
    /// Above zero while alternatives are tried: what does not fit there is no problem yet.
    quiet: usize,
    path: Vec<Step<'v>>,
    problems: Vec<(Vec<Step<'v>>, Problem<'s, 'v>)>,
    /// Before 2019-09 nothing beside a `$ref` counts.
    is_old: bool,
}

/// What is wrong with a value.
pub(crate) enum Problem<'s, 'v> {
    /// Its place, and then this.
    Text(String),
    Missing(&'s str),
    Unknown(Vec<&'v str>),
}

impl Budget {
    pub(crate) fn take(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.0 = self.0.checked_sub(steps).ok_or(TooMuch)?;
        Ok(())
    }
}

impl<'s, 'v, 'c> Walk<'s, 'v, 'c> {
    pub(crate) fn new(root: &'s Value, patterns: &'c Patterns, steps: u64) -> Walk<'s, 'v, 'c> {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_old = ["draft-03", "draft-04", "draft-06", "draft-07"].iter();
        Walk {
            root,
            patterns,
            budget: Budget(steps),
            depth: 0,
            quiet: 0,
            path: Vec::new(),
            problems: Vec::new(),
            is_old: is_old.into_iter().any(|old| draft.contains(old)),
        }
    }

    pub(crate) fn sentences(&self, root: &str) -> Vec<String> {
        let sentence = |(path, problem): &(Vec<Step<'_>>, Problem<'_, '_>)| {
            let place = render_place(root, path);
            match problem {
                Problem::Text(text)
                    if ["must ", "is ", "has "].iter().any(|verb| text.starts_with(verb)) =>
                {
                    format!("{} {text}", quote(&place))
                }
                Problem::Text(text) => format!("{}: {text}", quote(&place)),
                Problem::Missing(name) => {
                    let mut path = path.clone();
                    path.push(Step::Name(name));
                    format!("`{}` is missing", render_place(root, &path))
                }
                Problem::Unknown(names) => crate::problem::not_parameters(&place, names),
            }
        };
        self.problems.iter().map(sentence).collect()
    }

    /// Whether the value fits. `seen` collects what was looked at in it.
    pub(crate) fn apply(
        &mut self,
        schema: &'s Value,
        value: &'v Value,
        seen: Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        self.budget.take(1)?;
        let fields = match schema {
            Value::Bool(false) => {
                self.complain(|| "is not allowed".to_owned());
                return Ok(false);
            }
            Value::Object(fields) => fields,
            // Whatever else stands there is no schema, and so no rule.
            _ => return Ok(true),
        };
        if self.depth >= DEPTH {
            return Err(TooMuch);
        }
        self.depth += 1;
        let fits = self.apply_fields(fields, value, seen);
        self.depth -= 1;
        fits
    }

    fn apply_fields(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        mut seen: Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let rest = ["unevaluatedProperties", "unevaluatedItems"];
        if !rest.iter().any(|key| fields.contains_key(*key)) {
            return self.apply_keywords(fields, value, &mut seen);
        }
        let mut own = Evaluated::default();
        let mut fits = self.apply_keywords(fields, value, &mut Some(&mut own))?;
        fits &= self.apply_unevaluated(fields, value, &mut own)?;
        if let Some(seen) = seen {
            seen.add(own);
        }
        Ok(fits)
    }

    fn apply_keywords(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        if let (true, Some(to)) = (self.is_old, fields.get("$ref")) {
            return self.follow(to, value, seen.as_deref_mut());
        }
        let mut fits = true;
        for (key, rule) in fields {
            self.budget.take(1)?;
            fits &= match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", _) => {
                    self.follow(rule, value, seen.as_deref_mut())?
                }
                ("type", _) => self.check_type(rule, value)?,
                ("enum", _) => self.check_enum(rule, value)?,
                ("const", _) => self.check_const(rule, value)?,
                ("allOf", _) => self.check_all(rule, value, seen)?,
                ("anyOf", _) => self.check_any(rule, value, seen)?,
                ("oneOf", _) => self.check_one(rule, value, seen)?,
                ("not", _) => self.check_not(rule, value)?,
                ("if", _) => self.check_if(fields, value, seen)?,
                (key, Value::Number(number)) => self.check_number(key, rule, fields, number),
                (key, Value::String(text)) => self.check_text(key, rule, text)?,
                (key, Value::Array(list)) => self.check_array(key, rule, fields, list, seen)?,
                (key, Value::Object(object)) => {
                    self.check_object(key, rule, fields, (value, object), seen)?
                }
                (_, Value::Null | Value::Bool(_)) => true,
            };
            if !fits && !self.wants_more() {
                return Ok(false);
            }
        }
        Ok(fits)
    }

    /// THREAT[ORD-2]: references lead to places in the schema and nowhere else; each costs a step
    /// and a level, so a chain or a circle ends with the budget.
    fn follow(
        &mut self,
        to: &'s Value,
        value: &'v Value,
        seen: Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        match find_target(self.root, to) {
            Some(target) => self.apply(target, value, seen),
            None => Ok(true),
        }
    }

    fn check_all(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let mut fits = true;
        for schema in rule.as_array().into_iter().flatten() {
            fits &= self.apply(schema, value, seen.as_deref_mut())?;
            if !fits && !self.wants_more() {
                break;
            }
        }
        Ok(fits)
    }

    fn check_any(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let mut fits = false;
        for schema in rule.as_array().into_iter().flatten() {
            fits |= self.try_one(schema, value, seen)?;
            // All that fit have a say in what was looked at.
            if fits && seen.is_none() {
                break;
            }
        }
        if !fits {
            self.complain(|| format!("{} fits none of the alternatives", show(value)));
        }
        Ok(fits)
    }

    fn check_one(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let mut count = 0;
        for schema in rule.as_array().into_iter().flatten() {
            count += usize::from(self.try_one(schema, value, seen)?);
            if count > 1 {
                self.complain(|| format!("{} fits more than one alternative", show(value)));
                return Ok(false);
            }
        }
        if count == 0 {
            self.complain(|| format!("{} fits none of the alternatives", show(value)));
        }
        Ok(count == 1)
    }

    fn check_not(&mut self, rule: &'s Value, value: &'v Value) -> Result<bool, TooMuch> {
        let fits = self.try_one(rule, value, &mut None)?;
        if fits {
            self.complain(|| format!("{} is not allowed", show(value)));
        }
        Ok(!fits)
    }

    fn check_if(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        let Some(condition) = fields.get("if") else { return Ok(true) };
        let branch = if self.try_one(condition, value, seen)? { "then" } else { "else" };
        match fields.get(branch) {
            Some(schema) => self.apply(schema, value, seen.as_deref_mut()),
            None => Ok(true),
        }
    }

    /// Whether the value fits, without a word if not.
    pub(crate) fn try_one(
        &mut self,
        schema: &'s Value,
        value: &'v Value,
        seen: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, TooMuch> {
        self.quiet += 1;
        let fits = match seen {
            Some(seen) => {
                let mut tried = Evaluated::default();
                let fits = self.apply(schema, value, Some(&mut tried))?;
                if fits {
                    seen.add(tried);
                }
                fits
            }
            None => self.apply(schema, value, None)?,
        };
        self.quiet -= 1;
        Ok(fits)
    }

    fn check_enum(&mut self, rule: &'s Value, value: &'v Value) -> Result<bool, TooMuch> {
        let Value::Array(options) = rule else { return Ok(true) };
        for option in options {
            if equal(option, value, &mut self.budget)? {
                return Ok(true);
            }
        }
        self.complain(|| format!("must be one of {}", show_rule(rule)));
        Ok(false)
    }

    fn check_const(&mut self, rule: &'s Value, value: &'v Value) -> Result<bool, TooMuch> {
        let fits = equal(rule, value, &mut self.budget)?;
        if !fits {
            self.complain(|| format!("must be {}", show(rule)));
        }
        Ok(fits)
    }

    fn wants_more(&self) -> bool {
        self.quiet == 0 && self.problems.len() < SHOWN_PROBLEMS
    }

    fn complain(&mut self, text: impl FnOnce() -> String) {
        if self.wants_more() {
            self.report(Problem::Text(text()));
        }
    }

    fn report(&mut self, problem: Problem<'s, 'v>) {
        if self.wants_more() {
            self.problems.push((self.path.clone(), problem));
        }
    }
}

/// The place in the schema that a reference names by a JSON pointer.
pub(crate) fn find_target<'s>(root: &'s Value, to: &Value) -> Option<&'s Value> {
    let pointer = to.as_str().filter(|to| to.len() <= REFERENCE_BYTES)?.strip_prefix('#')?;
    root.pointer(pointer)
}
