//! Puts the meter into filters: every term that can make a value larger than its inputs is followed
//! by a look at what it made, and products are made by a function that looks before.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::ops::Math;
use jaq_core::path::{Part, Path};

use super::natives::{MADE, MULTIPLY};

/// A variable that no pattern can spell.
const OPERAND: &str = "$*operand";

/// `definition` with the meter in its body.
pub(super) fn definition(definition: Def<&str>) -> Def<&str> {
    Def {
        body: term(definition.body),
        ..definition
    }
}

/// `filter` with the meter in it.
pub(super) fn term(filter: Term<&str>) -> Term<&str> {
    match filter {
        Term::Id
        | Term::Recurse
        | Term::Num(_)
        | Term::Arr(None)
        | Term::Break(_)
        | Term::Var(_) => filter,
        Term::Str(format, parts) => string(format, parts),
        Term::Arr(Some(items)) => then_made(Term::Arr(Some(boxed(*items)))),
        Term::Obj(entries) => then_made(Term::Obj(entries.into_iter().map(entry).collect())),
        Term::Neg(filter) => Term::Neg(boxed(*filter)),
        Term::BinOp(left, op, right) => operation(term(*left), op, term(*right)),
        Term::Label(name, body) => Term::Label(name, boxed(*body)),
        Term::Fold(name, inputs, variables, arguments) => Term::Fold(
            name,
            boxed(*inputs),
            pattern(variables),
            arguments.into_iter().map(term).collect(),
        ),
        Term::TryCatch(body, catch) => {
            Term::TryCatch(boxed(*body), catch.map(|catch| boxed(*catch)))
        }
        Term::IfThenElse(branches, otherwise) => Term::IfThenElse(
            branches
                .into_iter()
                .map(|(condition, then)| (term(condition), term(then)))
                .collect(),
            otherwise.map(|otherwise| boxed(*otherwise)),
        ),
        Term::Def(definitions, body) => Term::Def(
            definitions.into_iter().map(definition).collect(),
            boxed(*body),
        ),
        Term::Call(name, arguments) => Term::Call(name, arguments.into_iter().map(term).collect()),
        Term::Path(start, path) => Term::Path(boxed(*start), parts(path)),
    }
}

fn boxed(filter: Term<&str>) -> Box<Term<&str>> {
    Box::new(term(filter))
}

/// `filter`, and a look at what it made.
fn then_made(filter: Term<&str>) -> Term<&str> {
    pipe(filter, None, Term::Call(MADE, Vec::new()))
}

fn pipe<'s>(
    left: Term<&'s str>,
    variable: Option<Pattern<&'s str>>,
    right: Term<&'s str>,
) -> Term<&'s str> {
    Term::BinOp(Box::new(left), BinaryOp::Pipe(variable), Box::new(right))
}

/// An operation on filters that have the meter already.
fn operation<'s>(
    left: Term<&'s str>,
    op: BinaryOp<&'s str>,
    right: Term<&'s str>,
) -> Term<&'s str> {
    match op {
        BinaryOp::Math(op) => arithmetic(left, op, right),
        BinaryOp::UpdateMath(op) => {
            let changed = arithmetic(Term::Id, op, Term::Var(OPERAND));
            let update = Term::BinOp(Box::new(left), BinaryOp::Update, Box::new(changed));
            pipe(right, Some(Pattern::Var(OPERAND)), then_made(update))
        }
        BinaryOp::Assign | BinaryOp::Update | BinaryOp::UpdateAlt => {
            then_made(Term::BinOp(Box::new(left), op, Box::new(right)))
        }
        BinaryOp::Pipe(variables) => pipe(left, variables.map(pattern), right),
        BinaryOp::Comma | BinaryOp::Alt | BinaryOp::Or | BinaryOp::And | BinaryOp::Cmp(_) => {
            Term::BinOp(Box::new(left), op, Box::new(right))
        }
    }
}

fn arithmetic<'s>(left: Term<&'s str>, op: Math, right: Term<&'s str>) -> Term<&'s str> {
    match op {
        Math::Mul => Term::Call(MULTIPLY, vec![left, right]),
        Math::Add | Math::Sub | Math::Div | Math::Rem => then_made(Term::BinOp(
            Box::new(left),
            BinaryOp::Math(op),
            Box::new(right),
        )),
    }
}

/// A string; one without a filter in it stays as it is, for it may name a key.
fn string<'s>(
    format: Option<&'s str>,
    parts: Vec<StrPart<&'s str, Term<&'s str>>>,
) -> Term<&'s str> {
    let has_filter = parts.iter().any(|part| matches!(part, StrPart::Term(_)));
    let parts = parts.into_iter().map(|part| match part {
        StrPart::Term(filter) => StrPart::Term(term(filter)),
        part => part,
    });
    let string = Term::Str(format, parts.collect());
    if has_filter {
        then_made(string)
    } else {
        string
    }
}

/// An entry of an object; a key that stands for its value too must stay as it is.
fn entry<'s>(
    (key, value): (Term<&'s str>, Option<Term<&'s str>>),
) -> (Term<&'s str>, Option<Term<&'s str>>) {
    match value {
        Some(value) => (term(key), Some(term(value))),
        None => (key, None),
    }
}

fn pattern(variables: Pattern<&str>) -> Pattern<&str> {
    match variables {
        Pattern::Var(name) => Pattern::Var(name),
        Pattern::Arr(items) => Pattern::Arr(items.into_iter().map(pattern).collect()),
        Pattern::Obj(entries) => {
            let entries = entries.into_iter();
            Pattern::Obj(
                entries
                    .map(|(key, item)| (term(key), pattern(item)))
                    .collect(),
            )
        }
    }
}

fn parts(path: Path<Term<&str>>) -> Path<Term<&str>> {
    let parts = path.0.into_iter().map(|(part, optional)| {
        let part = match part {
            Part::Index(index) => Part::Index(term(index)),
            Part::Range(start, stop) => Part::Range(start.map(term), stop.map(term)),
        };
        (part, optional)
    });
    Path(parts.collect())
}
