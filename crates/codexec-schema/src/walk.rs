//! Validates a value against a schema, keyword by keyword, in the order of the schema.

mod array;
mod object;
mod scalar;

use serde_json::{Map, Value};

use crate::{
    compare::equal,
    evaluated::Evaluated,
    message::{PathStep, quote, render_path, render_unknown_fields, show, show_rule},
    pattern::Patterns,
};

/// The maximum nesting of schemas, with every reference followed. Real schemas have a dozen levels.
const MAX_DEPTH: usize = 160;
const SHOWN_PROBLEMS: usize = 5;
/// A longer reference is not followed.
const REFERENCE_BYTES: usize = 1 << 10;

/// The remaining steps.
#[derive(Debug)]
pub(crate) struct StepBudget(u64);

/// The budget or the maximum depth is exceeded.
#[derive(Debug)]
pub(crate) struct BudgetExceeded;

/// One check of a value.
pub(crate) struct Validator<'s, 'v, 'c> {
    root: &'s Value,
    patterns: &'c Patterns,
    pub(crate) budget: StepBudget,
    depth: usize,
    /// Above zero while alternatives are candidate, whose problems are not reported.
    quiet: usize,
    path: Vec<PathStep<'v>>,
    problems: Vec<(Vec<PathStep<'v>>, ValueProblem<'s, 'v>)>,
    /// True for drafts before 2019-09, in which keywords next to `$ref` are ignored.
    is_old: bool,
}

/// A problem at a path of the value.
pub(crate) enum ValueProblem<'s, 'v> {
    /// The message without the path.
    Text(String),
    Missing(&'s str),
    Unknown(Vec<&'v str>),
}

impl StepBudget {
    pub(crate) fn take(&mut self, steps: u64) -> Result<(), BudgetExceeded> {
        self.0 = self.0.checked_sub(steps).ok_or(BudgetExceeded)?;
        Ok(())
    }
}

impl<'s, 'v, 'c> Validator<'s, 'v, 'c> {
    pub(crate) fn new(
        root: &'s Value,
        patterns: &'c Patterns,
        steps: u64,
    ) -> Validator<'s, 'v, 'c> {
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_old = ["draft-03", "draft-04", "draft-06", "draft-07"].iter();
        Validator {
            root,
            patterns,
            budget: StepBudget(steps),
            depth: 0,
            quiet: 0,
            path: Vec::new(),
            problems: Vec::new(),
            is_old: is_old.into_iter().any(|old| draft.contains(old)),
        }
    }

    /// Renders the problems as sentences.
    pub(crate) fn render_problems(&self, root: &str) -> Vec<String> {
        let render = |(steps, problem): &(Vec<PathStep<'_>>, ValueProblem<'_, '_>)| {
            let path = render_path(root, steps);
            match problem {
                ValueProblem::Text(text)
                    if ["must ", "is ", "has "].iter().any(|verb| text.starts_with(verb)) =>
                {
                    format!("{} {text}", quote(&path))
                }
                ValueProblem::Text(text) => format!("{}: {text}", quote(&path)),
                ValueProblem::Missing(name) => {
                    let mut steps = steps.clone();
                    steps.push(PathStep::Name(name));
                    format!("`{}` is missing", render_path(root, &steps))
                }
                ValueProblem::Unknown(names) => render_unknown_fields(&path, names),
            }
        };
        self.problems.iter().map(render).collect()
    }

    /// Returns true if the value matches the schema. Adds what was evaluated to `evaluated`.
    pub(crate) fn apply(
        &mut self,
        schema: &'s Value,
        value: &'v Value,
        evaluated: Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        self.budget.take(1)?;
        let fields = match schema {
            Value::Bool(false) => {
                self.report_text(|| "is not allowed".to_owned());
                return Ok(false);
            }
            Value::Object(fields) => fields,
            // An invalid schema matches everything.
            _ => return Ok(true),
        };
        if self.depth >= MAX_DEPTH {
            return Err(BudgetExceeded);
        }
        self.depth += 1;
        let fits = self.apply_fields(fields, value, evaluated);
        self.depth -= 1;
        fits
    }

    fn apply_fields(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        mut evaluated: Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let rest = ["unevaluatedProperties", "unevaluatedItems"];
        if !rest.iter().any(|key| fields.contains_key(*key)) {
            return self.apply_keywords(fields, value, &mut evaluated);
        }
        let mut own = Evaluated::default();
        let mut fits = self.apply_keywords(fields, value, &mut Some(&mut own))?;
        fits &= self.apply_unevaluated(fields, value, &mut own)?;
        if let Some(evaluated) = evaluated {
            evaluated.add(own);
        }
        Ok(fits)
    }

    fn apply_keywords(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        if let (true, Some(to)) = (self.is_old, fields.get("$ref")) {
            return self.follow(to, value, evaluated.as_deref_mut());
        }
        let mut fits = true;
        for (key, rule) in fields {
            self.budget.take(1)?;
            fits &= match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", _) => {
                    self.follow(rule, value, evaluated.as_deref_mut())?
                }
                ("type", _) => self.check_type(rule, value)?,
                ("enum", _) => self.check_enum(rule, value)?,
                ("const", _) => self.check_const(rule, value)?,
                ("allOf", _) => self.check_all(rule, value, evaluated)?,
                ("anyOf", _) => self.check_any(rule, value, evaluated)?,
                ("oneOf", _) => self.check_one(rule, value, evaluated)?,
                ("not", _) => self.check_not(rule, value)?,
                ("if", _) => self.check_if(fields, value, evaluated)?,
                (key, Value::Number(number)) => self.check_number(key, rule, fields, number),
                (key, Value::String(text)) => self.check_text(key, rule, text)?,
                (key, Value::Array(list)) => {
                    self.check_array(key, rule, fields, list, evaluated)?
                }
                (key, Value::Object(object)) => {
                    self.check_object(key, rule, fields, (value, object), evaluated)?
                }
                (_, Value::Null | Value::Bool(_)) => true,
            };
            if !fits && !self.accepts_problems() {
                return Ok(false);
            }
        }
        Ok(fits)
    }

    /// THREAT[ORD-2]: references point only into the schema. Each costs a step and a level, so a
    /// chain or a circle ends with the budget.
    fn follow(
        &mut self,
        to: &'s Value,
        value: &'v Value,
        evaluated: Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        match find_target(self.root, to) {
            Some(target) => self.apply(target, value, evaluated),
            None => Ok(true),
        }
    }

    fn check_all(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let mut fits = true;
        for schema in rule.as_array().into_iter().flatten() {
            fits &= self.apply(schema, value, evaluated.as_deref_mut())?;
            if !fits && !self.accepts_problems() {
                break;
            }
        }
        Ok(fits)
    }

    fn check_any(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let mut fits = false;
        for schema in rule.as_array().into_iter().flatten() {
            fits |= self.try_one(schema, value, evaluated)?;
            // `evaluated` needs all matching alternatives.
            if fits && evaluated.is_none() {
                break;
            }
        }
        if !fits {
            self.report_text(|| format!("{} fits none of the alternatives", show(value)));
        }
        Ok(fits)
    }

    fn check_one(
        &mut self,
        rule: &'s Value,
        value: &'v Value,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let mut count = 0;
        for schema in rule.as_array().into_iter().flatten() {
            count += usize::from(self.try_one(schema, value, evaluated)?);
            if count > 1 {
                self.report_text(|| format!("{} fits more than one alternative", show(value)));
                return Ok(false);
            }
        }
        if count == 0 {
            self.report_text(|| format!("{} fits none of the alternatives", show(value)));
        }
        Ok(count == 1)
    }

    fn check_not(&mut self, rule: &'s Value, value: &'v Value) -> Result<bool, BudgetExceeded> {
        let fits = self.try_one(rule, value, &mut None)?;
        if fits {
            self.report_text(|| format!("{} is not allowed", show(value)));
        }
        Ok(!fits)
    }

    fn check_if(
        &mut self,
        fields: &'s Map<String, Value>,
        value: &'v Value,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        let Some(condition) = fields.get("if") else { return Ok(true) };
        let branch = if self.try_one(condition, value, evaluated)? { "then" } else { "else" };
        match fields.get(branch) {
            Some(schema) => self.apply(schema, value, evaluated.as_deref_mut()),
            None => Ok(true),
        }
    }

    /// Returns true if the value matches, without reporting problems.
    pub(crate) fn try_one(
        &mut self,
        schema: &'s Value,
        value: &'v Value,
        evaluated: &mut Option<&mut Evaluated<'v>>,
    ) -> Result<bool, BudgetExceeded> {
        self.quiet += 1;
        let fits = match evaluated {
            Some(evaluated) => {
                let mut candidate = Evaluated::default();
                let fits = self.apply(schema, value, Some(&mut candidate))?;
                if fits {
                    evaluated.add(candidate);
                }
                fits
            }
            None => self.apply(schema, value, None)?,
        };
        self.quiet -= 1;
        Ok(fits)
    }

    fn check_enum(&mut self, rule: &'s Value, value: &'v Value) -> Result<bool, BudgetExceeded> {
        let Value::Array(options) = rule else { return Ok(true) };
        for option in options {
            if equal(option, value, &mut self.budget)? {
                return Ok(true);
            }
        }
        self.report_text(|| format!("must be one of {}", show_rule(rule)));
        Ok(false)
    }

    fn check_const(&mut self, rule: &'s Value, value: &'v Value) -> Result<bool, BudgetExceeded> {
        let fits = equal(rule, value, &mut self.budget)?;
        if !fits {
            self.report_text(|| format!("must be {}", show(rule)));
        }
        Ok(fits)
    }

    fn accepts_problems(&self) -> bool {
        self.quiet == 0 && self.problems.len() < SHOWN_PROBLEMS
    }

    fn report_text(&mut self, text: impl FnOnce() -> String) {
        if self.accepts_problems() {
            self.report(ValueProblem::Text(text()));
        }
    }

    fn report(&mut self, problem: ValueProblem<'s, 'v>) {
        if self.accepts_problems() {
            self.problems.push((self.path.clone(), problem));
        }
    }
}

/// Returns the part of the schema that a reference points to by a JSON pointer.
pub(crate) fn find_target<'s>(root: &'s Value, to: &Value) -> Option<&'s Value> {
    let pointer = to.as_str().filter(|to| to.len() <= REFERENCE_BYTES)?.strip_prefix('#')?;
    root.pointer(pointer)
}
