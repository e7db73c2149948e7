//! Inserts the meter into filters, so that everything that can be large or deeply nested is checked.
//!
//! - A term that creates a value is followed by a check of the value ([`MADE`]). Sums and products
//!   are created by functions that check first ([`ADD`], [`MULTIPLY`]).
//! - A native function that creates a value many times as large as its input is preceded by a
//!   check ([`check_of`]). The same holds for strings with values in them ([`SHOWN`]).
//! - A definition with closure parameters gets an additional parameter, the length of the chain of
//!   closures ([`DEEPER`]). Dropping such a chain recurses, so its length is limited.
//! - In patterns that use paths, each path step is followed by a check of the path's length
//!   ([`PLACE`]).

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Opt, Part, Path};

use super::natives::{
    ADD, ASSIGNED, COPIED, Check, DEEPER, MADE, MULTIPLY, PASS, PLACE, SHOWN, SIZED, check_of,
};

/// Variables that no pattern can spell.
const OPERAND: &str = "$*operand";
const DEPTH: &str = "$*depth";

/// Rewrites the definitions of the library and of a pattern.
pub(super) struct Rewriter<'s> {
    /// The pattern whose definitions are rewritten. Empty for the library, whose definitions do not
    /// call themselves.
    pattern: &'s str,
    has_paths: bool,
    /// The names in scope, innermost last.
    scope: Vec<Named<'s>>,
    /// Whether [`DEPTH`] is in scope.
    has_depth: bool,
}

/// A definition or a closure parameter.
struct Named<'s> {
    name: &'s str,
    arity: usize,
    /// The new name of the definition, if it has an additional parameter.
    renamed: Option<&'s str>,
}

impl<'s> Rewriter<'s> {
    /// A rewriter for the definitions of the library.
    pub(super) fn of_library(has_paths: bool) -> Self {
        Self::of_pattern("", has_paths)
    }

    /// A rewriter for a pattern. `has_paths` states whether the pattern uses functions that return
    /// paths.
    pub(super) fn of_pattern(pattern: &'s str, has_paths: bool) -> Self {
        Self {
            pattern,
            has_paths,
            scope: Vec::new(),
            has_depth: false,
        }
    }

    /// `definition` with the meter in its body. Its name is in scope afterwards.
    pub(super) fn definition(&mut self, definition: Def<&'s str>) -> Def<&'s str> {
        let Def {
            name,
            mut args,
            body,
        } = definition;
        let is_closure = |arg: &&&str| !arg.starts_with('$');
        let has_closures = args.iter().any(|arg| is_closure(&arg));
        let renamed = has_closures.then(|| self.beyond(name)).flatten();
        self.scope.push(Named {
            name,
            arity: args.len(),
            renamed,
        });
        let known = self.scope.len();
        let closures = args.iter().filter(is_closure).map(|arg| Named {
            name: arg,
            arity: 0,
            renamed: None,
        });
        self.scope.extend(closures);
        let had_depth = self.has_depth;
        if renamed.is_some() {
            args.push(DEPTH);
            self.has_depth = true;
        }
        let body = self.term(body);
        self.has_depth = had_depth;
        self.scope.truncate(known);
        Def {
            name: renamed.unwrap_or(name),
            args,
            body,
        }
    }

    /// `name` extended by the character that follows it in the pattern. No pattern can spell this
    /// name.
    fn beyond(&self, name: &'s str) -> Option<&'s str> {
        let start = (name.as_ptr() as usize).checked_sub(self.pattern.as_ptr() as usize)?;
        let rest = self.pattern.get(start..)?.strip_prefix(name)?;
        let len = name.len() + rest.chars().next()?.len_utf8();
        self.pattern.get(start..start + len)
    }

    /// `filter` with the meter in it.
    pub(super) fn term(&mut self, filter: Term<&'s str>) -> Term<&'s str> {
        match filter {
            Term::Id | Term::Num(_) | Term::Arr(None) | Term::Break(_) | Term::Var(_) => filter,
            Term::Recurse => followed_by(Term::Recurse, PASS),
            Term::Str(format, parts) => self.string(format, parts),
            Term::Obj(entries) if entries.is_empty() => Term::Obj(entries),
            Term::Arr(Some(items)) => followed_by(Term::Arr(Some(self.boxed(*items))), MADE),
            Term::Obj(entries) => {
                let entries = entries.into_iter().map(|entry| self.entry(entry)).collect();
                followed_by(Term::Obj(entries), MADE)
            }
            Term::Neg(filter) => Term::Neg(self.boxed(*filter)),
            Term::BinOp(left, op, right) => self.operation(*left, op, *right),
            Term::Label(name, body) => Term::Label(name, self.boxed(*body)),
            Term::Fold(name, inputs, variables, arguments) => Term::Fold(
                name,
                self.boxed(*inputs),
                self.pattern(variables),
                self.terms(arguments),
            ),
            Term::TryCatch(body, catch) => {
                let body = self.boxed(*body);
                // Catching an error prints the value of the error, even if the handler does not
                // use the message.
                let catch = match catch {
                    Some(catch) => self.term(*catch),
                    None => Term::Call("!empty", Vec::new()),
                };
                Term::TryCatch(body, Some(Box::new(preceded_by(MADE, catch))))
            }
            Term::IfThenElse(branches, otherwise) => {
                let branches = branches.into_iter();
                let branches = branches.map(|(condition, then)| {
                    let condition = self.term(condition);
                    (condition, self.term(then))
                });
                let branches = branches.collect();
                Term::IfThenElse(branches, otherwise.map(|otherwise| self.boxed(*otherwise)))
            }
            Term::Def(definitions, body) => {
                let known = self.scope.len();
                let definitions = definitions.into_iter();
                let definitions = definitions.map(|definition| self.definition(definition));
                let definitions = definitions.collect();
                let body = self.boxed(*body);
                self.scope.truncate(known);
                Term::Def(definitions, body)
            }
            Term::Call(name, arguments) => self.call(name, arguments),
            Term::Path(start, path) => self.path(*start, path),
        }
    }

    fn terms(&mut self, filters: Vec<Term<&'s str>>) -> Vec<Term<&'s str>> {
        filters
            .into_iter()
            .map(|filter| self.term(filter))
            .collect()
    }

    fn boxed(&mut self, filter: Term<&'s str>) -> Box<Term<&'s str>> {
        Box::new(self.term(filter))
    }

    fn call(&mut self, name: &'s str, arguments: Vec<Term<&'s str>>) -> Term<&'s str> {
        let mut arguments = self.terms(arguments);
        let arity = arguments.len();
        let mut scope = self.scope.iter().rev();
        if let Some(named) = scope.find(|named| named.name == name && named.arity == arity) {
            let Some(renamed) = named.renamed else {
                return Term::Call(name, arguments);
            };
            arguments.push(if self.has_depth {
                Term::Call(DEEPER, vec![Term::Var(DEPTH)])
            } else {
                Term::Num("0")
            });
            return Term::Call(renamed, arguments);
        }
        let check = check_of(name, arity);
        if let Some(Check::FirstArgument(check)) = check {
            let first = arguments.remove(0);
            arguments.insert(0, followed_by(first, check));
        }
        let call = Term::Call(name, arguments);
        match check {
            None | Some(Check::FirstArgument(_)) => call,
            Some(Check::Made) => followed_by(call, MADE),
            Some(Check::Before(check)) => followed_by(preceded_by(check, call), MADE),
        }
    }

    /// An operator.
    fn operation(
        &mut self,
        left: Term<&'s str>,
        op: BinaryOp<&'s str>,
        right: Term<&'s str>,
    ) -> Term<&'s str> {
        let left = self.term(left);
        let op = match op {
            BinaryOp::Pipe(variables) => {
                BinaryOp::Pipe(variables.map(|variables| self.pattern(variables)))
            }
            op => op,
        };
        let right = self.term(right);
        match op {
            BinaryOp::Math(op) => arithmetic(left, op, right),
            // Sums and products check the result at each path, so only the nesting of the added
            // values must be checked here.
            BinaryOp::UpdateMath(op) => {
                let changed = arithmetic(Term::Id, op, Term::Var(OPERAND));
                assignment(right, left, BinaryOp::Update, changed)
            }
            BinaryOp::Assign => assignment(right, left, BinaryOp::Assign, Term::Var(OPERAND)),
            BinaryOp::Update | BinaryOp::UpdateAlt => {
                followed_by(Term::BinOp(Box::new(left), op, Box::new(right)), MADE)
            }
            BinaryOp::Cmp(_)
            | BinaryOp::Pipe(_)
            | BinaryOp::Comma
            | BinaryOp::Alt
            | BinaryOp::Or
            | BinaryOp::And => Term::BinOp(Box::new(left), op, Box::new(right)),
        }
    }

    /// A string. Without an interpolated filter it stays unchanged, because it may be a key.
    fn string(
        &mut self,
        format: Option<&'s str>,
        parts: Vec<StrPart<&'s str, Term<&'s str>>>,
    ) -> Term<&'s str> {
        let has_filter = parts.iter().any(|part| matches!(part, StrPart::Term(_)));
        let parts = parts.into_iter().map(|part| match part {
            StrPart::Term(filter) => StrPart::Term(followed_by(self.term(filter), SHOWN)),
            part => part,
        });
        let string = Term::Str(format, parts.collect());
        if has_filter {
            followed_by(string, MADE)
        } else {
            string
        }
    }

    /// An entry of an object. A key without a value must stay unchanged.
    fn entry(
        &mut self,
        (key, value): (Term<&'s str>, Option<Term<&'s str>>),
    ) -> (Term<&'s str>, Option<Term<&'s str>>) {
        match value {
            Some(value) => {
                let key = self.term(key);
                (key, Some(self.term(value)))
            }
            None => (key, None),
        }
    }

    fn pattern(&mut self, variables: Pattern<&'s str>) -> Pattern<&'s str> {
        match variables {
            Pattern::Var(name) => Pattern::Var(name),
            Pattern::Arr(items) => {
                Pattern::Arr(items.into_iter().map(|item| self.pattern(item)).collect())
            }
            Pattern::Obj(entries) => {
                let entries = entries.into_iter().map(|(key, item)| {
                    let key = self.term(key);
                    (key, self.pattern(item))
                });
                Pattern::Obj(entries.collect())
            }
        }
    }

    /// A path. Each output of an iteration is a step, and a slice is a copy.
    fn path(&mut self, start: Term<&'s str>, path: Path<Term<&'s str>>) -> Term<&'s str> {
        let start = self.term(start);
        let parts: Vec<_> = path.0.into_iter().map(|part| self.part(part)).collect();
        let is_range = |(part, _): &(Part<_>, Opt)| matches!(part, Part::Range(..));
        let has_range = parts.iter().any(is_range);
        let check = match parts.last() {
            Some((Part::Range(from, upto), _)) if from.is_some() || upto.is_some() => Some(COPIED),
            _ => has_range.then_some(PASS),
        };
        let is_literal = is_literal(&start);
        let path = Term::Path(Box::new(start), Path(parts));
        let path = match check {
            Some(check) if !is_literal && (check == COPIED || !self.has_paths) => {
                followed_by(path, check)
            }
            _ => path,
        };
        if self.has_paths {
            followed_by(path, PLACE)
        } else {
            path
        }
    }

    fn part(&mut self, (part, optional): (Part<Term<&'s str>>, Opt)) -> (Part<Term<&'s str>>, Opt) {
        let part = match part {
            Part::Index(index) => Part::Index(self.term(index)),
            Part::Range(start, stop) => {
                let start = start.map(|start| self.term(start));
                Part::Range(start, stop.map(|stop| self.term(stop)))
            }
        };
        (part, optional)
    }
}

/// Whether a filter returns a single small value.
fn is_literal(filter: &Term<&str>) -> bool {
    match filter {
        Term::Num(_) | Term::Arr(None) => true,
        Term::Obj(entries) => entries.is_empty(),
        Term::Str(None, parts) => parts.iter().all(|part| !matches!(part, StrPart::Term(_))),
        Term::Neg(filter) => is_literal(filter),
        Term::Call("null" | "true" | "false", arguments) => arguments.is_empty(),
        _ => false,
    }
}

/// `filter` followed by a function without arguments.
fn followed_by<'s>(filter: Term<&'s str>, name: &'static str) -> Term<&'s str> {
    pipe(filter, None, Term::Call(name, Vec::new()))
}

fn preceded_by<'s>(name: &'static str, filter: Term<&'s str>) -> Term<&'s str> {
    pipe(Term::Call(name, Vec::new()), None, filter)
}

fn pipe<'s>(
    left: Term<&'s str>,
    variable: Option<Pattern<&'s str>>,
    right: Term<&'s str>,
) -> Term<&'s str> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(variable), Box::new(right))
}

/// `path op changed`, with [`OPERAND`] bound to each output of `operand`, and a check of the
/// result.
fn assignment<'s>(
    operand: Term<&'s str>,
    path: Term<&'s str>,
    op: BinaryOp<&'s str>,
    changed: Term<&'s str>,
) -> Term<&'s str> {
    let update = Term::BinOp(Box::new(path), op, Box::new(changed));
    let checked = pipe(update, None, Term::Call(ASSIGNED, vec![Term::Var(OPERAND)]));
    pipe(operand, Some(Pattern::Var(OPERAND)), checked)
}

fn arithmetic<'s>(left: Term<&'s str>, op: Math, right: Term<&'s str>) -> Term<&'s str> {
    match op {
        Math::Mul => Term::Call(MULTIPLY, vec![left, right]),
        Math::Add => Term::Call(ADD, vec![left, right]),
        Math::Sub | Math::Div | Math::Rem => {
            let (left, right) = (Box::new(left), Box::new(right));
            followed_by(Term::BinOp(left, BinaryOp::Math(op), right), SIZED)
        }
    }
}
