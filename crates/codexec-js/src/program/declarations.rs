//! Makes the declarations of a cell belong to the session, and not to the function that is wrapped
//! around the cell.
//!
//! Every declaration in the cell's own scope becomes an assignment to a property of one of two
//! objects of the prelude, which define it on the global object. Code that *uses* a name is not
//! changed: it finds the property of the global object, from any cell and any closure, unless an
//! inner scope has the name. So no scope analysis is needed here.

use oxc_allocator::{Allocator, ArenaVec, TakeIn};
use oxc_ast::ast::{
    ArrayAssignmentTarget, AssignmentOperator, AssignmentTarget, AssignmentTargetMaybeDefault,
    AssignmentTargetProperty, AssignmentTargetPropertyProperty, AssignmentTargetRest,
    AssignmentTargetWithDefault, BindingIdentifier, BindingPattern, BindingRestElement, ClassType,
    Expression, ForStatementInit, ForStatementLeft, Function, FunctionType, IdentifierName,
    ObjectAssignmentTarget, ObjectPropertyKind, Program, PropertyKey, PropertyKind, Statement,
    StaticMemberExpression, UnaryOperator, VariableDeclaration, VariableDeclarationKind,
    VariableDeclarator,
};
use oxc_ast::builder::AstBuilder;
use oxc_span::{GetSpan, Span};

/// Names that a cell declares without a value.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct DeclaredNames {
    /// `var`s: they exist from the start, with their previous value.
    pub(crate) variables: Vec<String>,
    /// Enums: their printed code extends an existing object, so they have to be reset.
    pub(crate) anew: Vec<String>,
}

/// The names of the two objects in the printed code. The cell's text contains neither of them.
pub(super) struct OwnerNames {
    pub(super) variables: String,
    pub(super) constants: String,
}

impl OwnerNames {
    pub(super) fn unused_in(code: &str) -> OwnerNames {
        let unused = |mut name: String| {
            while code.contains(&name) {
                name.push('_');
            }
            name
        };
        OwnerNames { variables: unused("$let".to_owned()), constants: unused("$const".to_owned()) }
    }
}

/// Returns the names of a text's enums, before they are transformed.
pub(super) fn list_enums(program: &Program<'_>) -> Vec<String> {
    let name = |statement: &Statement<'_>| match statement {
        Statement::TSEnumDeclaration(one) if !one.declare => Some(one.id.name.to_string()),
        _ => None,
    };
    program.body.iter().filter_map(name).collect()
}

/// Makes the program's declarations belong to the session. Returns the names to declare before it
/// runs.
pub(super) fn share<'a>(
    program: &mut Program<'a>,
    owners: &'a OwnerNames,
    allocator: &'a Allocator,
) -> Vec<String> {
    let builder = AstBuilder::new(allocator);
    let mut sharer = DeclarationSharer { builder, allocator, owners, variables: Vec::new() };
    let body = program.body.take_in(&allocator);
    // Functions are hoisted.
    let (functions, others): (Vec<_>, Vec<_>) =
        body.into_iter().partition(|one| matches!(one, Statement::FunctionDeclaration(_)));
    for statement in functions.into_iter().chain(others) {
        let shared = sharer.share_top_level(statement);
        program.body.push(shared);
    }
    sharer.variables
}

struct DeclarationSharer<'a> {
    builder: AstBuilder<'a>,
    allocator: &'a Allocator,
    owners: &'a OwnerNames,
    variables: Vec<String>,
}

/// One of the two objects.
#[derive(Clone, Copy)]
enum NameOwner {
    Variables,
    Constants,
}

impl<'a> DeclarationSharer<'a> {
    fn share_top_level(&mut self, statement: Statement<'a>) -> Statement<'a> {
        match statement {
            Statement::VariableDeclaration(declaration) => {
                let declaration = declaration.unbox();
                match declaration.kind {
                    // Disposed of when the cell ends, so it stays local.
                    VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing => {
                        let declaration = oxc_allocator::Box::new_in(declaration, &self.allocator);
                        Statement::VariableDeclaration(declaration)
                    }
                    VariableDeclarationKind::Var
                    | VariableDeclarationKind::Let
                    | VariableDeclarationKind::Const => self.make_assignment_statement(declaration),
                }
            }
            Statement::FunctionDeclaration(function) => self.share_function(function.unbox()),
            Statement::ClassDeclaration(class) => {
                let mut class = class;
                class.r#type = ClassType::ClassExpression;
                let Some(id) = class.id.clone() else { return Statement::ClassDeclaration(class) };
                let span = class.span;
                let value = Expression::ClassExpression(class);
                let target = self.member(NameOwner::Variables, &id);
                self.statement(span, target, value)
            }
            mut other => {
                self.share_nested(&mut other);
                other
            }
        }
    }

    /// Assigns an anonymous function, so that it finds itself by the shared name; it still gets its
    /// name.
    fn share_function(&mut self, mut function: Function<'a>) -> Statement<'a> {
        let span = function.span;
        let Some(id) = function.id.take() else {
            return Statement::new_empty_statement(span, &self.builder);
        };
        function.r#type = FunctionType::FunctionExpression;
        let function = oxc_allocator::Box::new_in(function, &self.allocator);
        let value = self.give_name(&id, Expression::FunctionExpression(function));
        let target = self.member(NameOwner::Variables, &id);
        self.statement(span, target, value)
    }

    /// Handles `var`s in blocks and loops, which belong to the cell, too.
    fn share_nested(&mut self, statement: &mut Statement<'a>) {
        match statement {
            Statement::VariableDeclaration(declaration) if declaration.kind.is_var() => {
                let declaration = declaration.take_in(&self.allocator);
                *statement = self.make_assignment_statement(declaration);
            }
            Statement::BlockStatement(block) => self.share_all_nested(&mut block.body),
            Statement::IfStatement(branch) => {
                self.share_nested(&mut branch.consequent);
                branch.alternate.iter_mut().for_each(|other| self.share_nested(other));
            }
            Statement::ForStatement(loop_statement) => {
                if let Some(ForStatementInit::VariableDeclaration(declaration)) =
                    &mut loop_statement.init
                    && declaration.kind.is_var()
                {
                    let declaration = declaration.take_in(&self.allocator);
                    loop_statement.init =
                        self.make_assignments(declaration).map(ForStatementInit::from);
                }
                self.share_nested(&mut loop_statement.body);
            }
            Statement::ForInStatement(loop_statement) => {
                self.share_loop_variable(&mut loop_statement.left);
                self.share_nested(&mut loop_statement.body);
            }
            Statement::ForOfStatement(loop_statement) => {
                self.share_loop_variable(&mut loop_statement.left);
                self.share_nested(&mut loop_statement.body);
            }
            Statement::WhileStatement(loop_statement) => {
                self.share_nested(&mut loop_statement.body)
            }
            Statement::DoWhileStatement(loop_statement) => {
                self.share_nested(&mut loop_statement.body)
            }
            Statement::LabeledStatement(labeled) => self.share_nested(&mut labeled.body),
            Statement::SwitchStatement(switch) => {
                for case in &mut switch.cases {
                    self.share_all_nested(&mut case.consequent);
                }
            }
            Statement::TryStatement(attempt) => {
                self.share_all_nested(&mut attempt.block.body);
                if let Some(handler) = &mut attempt.handler {
                    self.share_all_nested(&mut handler.body.body);
                }
                if let Some(finalizer) = &mut attempt.finalizer {
                    self.share_all_nested(&mut finalizer.body);
                }
            }
            // No other statement contains statements of the same function.
            _ => {}
        }
    }

    fn share_all_nested(&mut self, statements: &mut ArenaVec<'a, Statement<'a>>) {
        for statement in statements {
            self.share_nested(statement);
        }
    }

    fn share_loop_variable(&mut self, left: &mut ForStatementLeft<'a>) {
        if let ForStatementLeft::VariableDeclaration(declaration) = left
            && declaration.kind.is_var()
        {
            let declaration = declaration.take_in(&self.allocator);
            self.record_vars(&declaration);
            if let Some(VariableDeclarator { id, .. }) = declaration.declarations.into_iter().next()
            {
                *left = ForStatementLeft::from(self.target(NameOwner::Variables, id));
            }
        }
    }

    fn make_assignment_statement(&mut self, declaration: VariableDeclaration<'a>) -> Statement<'a> {
        let span = declaration.span;
        match self.make_assignments(declaration) {
            Some(value) => Statement::new_expression_statement(span, value, &self.builder),
            None => Statement::new_empty_statement(span, &self.builder),
        }
    }

    fn make_assignments(&mut self, declaration: VariableDeclaration<'a>) -> Option<Expression<'a>> {
        self.record_vars(&declaration);
        let VariableDeclaration { span, kind, declarations, .. } = declaration;
        let owner = if kind.is_const() { NameOwner::Constants } else { NameOwner::Variables };
        let mut all = ArenaVec::new_in(&self.allocator);
        for VariableDeclarator { span, id, init, .. } in declarations {
            let value = match init {
                Some(value) => value,
                None if kind.is_var() => continue,
                None => self.undefined(span),
            };
            let value = match &id {
                BindingPattern::BindingIdentifier(id) => self.give_name(id, value),
                BindingPattern::ObjectPattern(_)
                | BindingPattern::ArrayPattern(_)
                | BindingPattern::AssignmentPattern(_) => value,
            };
            let target = self.target(owner, id);
            all.push(self.assignment(span, target, value));
        }
        match all.len() {
            0 => None,
            1 => all.pop(),
            _ => Some(Expression::new_sequence_expression(span, all, &self.builder)),
        }
    }

    fn record_vars(&mut self, declaration: &VariableDeclaration<'a>) {
        if declaration.kind.is_var() {
            let names = declaration.declarations.iter();
            let names = names.flat_map(|one| one.id.get_binding_identifiers());
            self.variables.extend(names.map(|id| id.name.to_string()));
        }
    }

    fn target(&self, owner: NameOwner, pattern: BindingPattern<'a>) -> AssignmentTarget<'a> {
        match pattern {
            BindingPattern::BindingIdentifier(id) => self.member(owner, &id),
            BindingPattern::ObjectPattern(pattern) => {
                let pattern = pattern.unbox();
                let properties = pattern.properties.into_iter().map(|property| {
                    let value = self.with_default(owner, property.value);
                    AssignmentTargetProperty::AssignmentTargetPropertyProperty(
                        AssignmentTargetPropertyProperty::boxed(
                            property.span,
                            property.key,
                            value,
                            property.computed,
                            &self.builder,
                        ),
                    )
                });
                let properties = ArenaVec::from_iter_in(properties, &self.allocator);
                let rest = pattern.rest.map(|rest| self.rest(owner, rest.unbox()));
                AssignmentTarget::ObjectAssignmentTarget(ObjectAssignmentTarget::boxed(
                    pattern.span,
                    properties,
                    rest,
                    &self.builder,
                ))
            }
            BindingPattern::ArrayPattern(pattern) => {
                let pattern = pattern.unbox();
                let elements = pattern.elements.into_iter();
                let elements = elements.map(|one| one.map(|one| self.with_default(owner, one)));
                let elements = ArenaVec::from_iter_in(elements, &self.allocator);
                let rest = pattern.rest.map(|rest| self.rest(owner, rest.unbox()));
                AssignmentTarget::ArrayAssignmentTarget(ArrayAssignmentTarget::boxed(
                    pattern.span,
                    elements,
                    rest,
                    &self.builder,
                ))
            }
            // Only inside other patterns, where `with_default` has handled it.
            BindingPattern::AssignmentPattern(pattern) => self.target(owner, pattern.unbox().left),
        }
    }

    fn with_default(
        &self,
        owner: NameOwner,
        pattern: BindingPattern<'a>,
    ) -> AssignmentTargetMaybeDefault<'a> {
        let BindingPattern::AssignmentPattern(pattern) = pattern else {
            return AssignmentTargetMaybeDefault::from(self.target(owner, pattern));
        };
        let pattern = pattern.unbox();
        let default = match &pattern.left {
            BindingPattern::BindingIdentifier(id) => self.give_name(id, pattern.right),
            BindingPattern::ObjectPattern(_)
            | BindingPattern::ArrayPattern(_)
            | BindingPattern::AssignmentPattern(_) => pattern.right,
        };
        let target = self.target(owner, pattern.left);
        AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(
            AssignmentTargetWithDefault::boxed(pattern.span, target, default, &self.builder),
        )
    }

    fn rest(
        &self,
        owner: NameOwner,
        rest: BindingRestElement<'a>,
    ) -> oxc_allocator::Box<'a, AssignmentTargetRest<'a>> {
        let target = self.target(owner, rest.argument);
        AssignmentTargetRest::boxed(rest.span, target, &self.builder)
    }

    fn member(&self, owner: NameOwner, id: &BindingIdentifier<'a>) -> AssignmentTarget<'a> {
        let span = id.span;
        let object = match owner {
            NameOwner::Variables => self.owners.variables.as_str(),
            NameOwner::Constants => self.owners.constants.as_str(),
        };
        let object = Expression::new_identifier(span, object, &self.builder);
        let property = IdentifierName::new(span, id.name, &self.builder);
        AssignmentTarget::StaticMemberExpression(StaticMemberExpression::boxed(
            span,
            object,
            property,
            false,
            &self.builder,
        ))
    }

    /// Gives an anonymous function its name. The engine does that only for assignments to a plain
    /// name, so the value becomes `{f: () => 1}.f`.
    fn give_name(&self, id: &BindingIdentifier<'a>, value: Expression<'a>) -> Expression<'a> {
        if !value.is_anonymous_function_definition() {
            return value;
        }
        let (span, builder) = (value.span(), &self.builder);
        let key = PropertyKey::new_static_identifier(span, id.name, builder);
        let kind = PropertyKind::Init;
        let property = ObjectPropertyKind::new_object_property(
            span, kind, key, value, false, false, false, builder,
        );
        let properties = ArenaVec::from_iter_in([property], &self.allocator);
        let object = Expression::new_object_expression(span, properties, builder);
        let property = IdentifierName::new(span, id.name, builder);
        let member = StaticMemberExpression::boxed(span, object, property, false, builder);
        Expression::StaticMemberExpression(member)
    }

    fn statement(
        &self,
        span: Span,
        target: AssignmentTarget<'a>,
        value: Expression<'a>,
    ) -> Statement<'a> {
        let assignment = self.assignment(span, target, value);
        Statement::new_expression_statement(span, assignment, &self.builder)
    }

    fn assignment(
        &self,
        span: Span,
        target: AssignmentTarget<'a>,
        value: Expression<'a>,
    ) -> Expression<'a> {
        let operator = AssignmentOperator::Assign;
        Expression::new_assignment_expression(span, operator, target, value, &self.builder)
    }

    fn undefined(&self, span: Span) -> Expression<'a> {
        let zero = Expression::new_null_literal(span, &self.builder);
        Expression::new_unary_expression(span, UnaryOperator::Void, zero, &self.builder)
    }
}
