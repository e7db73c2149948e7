//! Reads patterns: the part of Oniguruma's syntax that split patterns use, as the package's library reads it.
//!
//! Where that syntax differs from others:
//!
//! - `X{1,3}+` repeats `X{1,3}`; only `*+`, `++` and `?+` are possessive.
//! - `$` also matches before a line feed.
//! - `(?i:s)` also matches `ſ`, and `(?i:k)` the Kelvin sign; `(?i:ss)` would also match `ß`.
//! - `(?i)` extends to the end of the group, alternatives included.

use std::iter::Peekable;
use std::str::Chars;

use super::char_set::CharSet;

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// One character.
    Char(CharSet),
    /// No character, if the next one is in the set; `or_end`: or if the text ends.
    LookAhead {
        set: CharSet,
        or_end: bool,
    },
    Concat(Vec<Node>),
    /// The first that leads to a match.
    Alternatives(Vec<Node>),
    Repeat {
        node: Box<Node>,
        least: u32,
        /// `None` without limit.
        most: Option<u32>,
        /// Prefers few.
        is_lazy: bool,
    },
}

/// Groups and classes nested more deeply are refused, because reading them is recursive.
const MAX_DEPTH: usize = 32;

/// The largest number that a repetition may have.
const MAX_REPEAT: u32 = 1000;

impl Node {
    /// # Errors
    /// What the pattern contains that cannot be read, as a phrase.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let mut parser = Parser {
            rest: pattern.chars().peekable(),
            depth: 0,
        };
        let node = parser.alternatives(false)?;
        match parser.rest.next() {
            None => Ok(node),
            Some(char) => Err(format!("{char:?} where nothing is open")),
        }
    }

    /// Exactly this text.
    pub(super) fn literal(text: &str) -> Self {
        Self::Concat(
            text.chars()
                .map(|char| Self::Char(CharSet::of_char(char)))
                .collect(),
        )
    }

    /// At least one of these characters.
    pub(super) fn run(set: CharSet) -> Self {
        Self::Repeat {
            node: Box::new(Self::Char(set)),
            least: 1,
            most: None,
            is_lazy: false,
        }
    }

    /// Whether it may match no character.
    pub(super) fn is_nullable(&self) -> bool {
        match self {
            Self::Char(_) => false,
            Self::LookAhead { .. } => true,
            Self::Concat(nodes) => nodes.iter().all(Self::is_nullable),
            Self::Alternatives(nodes) => nodes.iter().any(Self::is_nullable),
            Self::Repeat { node, least, .. } => *least == 0 || node.is_nullable(),
        }
    }

    /// Whether it may match a character of a set, or looks ahead.
    pub(super) fn has_any_or_looks_ahead(&self, set: &CharSet) -> bool {
        match self {
            Self::Char(own) => !own.intersection(set).ranges().is_empty(),
            Self::LookAhead { .. } => true,
            Self::Concat(nodes) | Self::Alternatives(nodes) => {
                nodes.iter().any(|node| node.has_any_or_looks_ahead(set))
            }
            Self::Repeat { node, .. } => node.has_any_or_looks_ahead(set),
        }
    }

    /// Whether it may match this character anywhere.
    fn has(&self, char: char) -> bool {
        match self {
            Self::Char(set) => set.contains(char),
            Self::LookAhead { .. } => false,
            Self::Concat(nodes) | Self::Alternatives(nodes) => {
                nodes.iter().any(|node| node.has(char))
            }
            Self::Repeat { node, .. } => node.has(char),
        }
    }
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
}

impl Parser<'_> {
    /// Up to the end of the group. `(?i)` at its start is read, too.
    fn alternatives(&mut self, mut ignores_case: bool) -> Result<Node, String> {
        let mut ahead = self.rest.clone();
        if ahead.by_ref().take(4).eq("(?i)".chars()) {
            self.rest = ahead;
            ignores_case = true;
        }
        let mut all = vec![self.concat(ignores_case)?];
        while self.rest.next_if_eq(&'|').is_some() {
            all.push(self.concat(ignores_case)?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Node::Alternatives(all),
        })
    }

    fn concat(&mut self, ignores_case: bool) -> Result<Node, String> {
        let mut all = Vec::new();
        while self
            .rest
            .peek()
            .is_some_and(|&char| char != '|' && char != ')')
        {
            let node = self.atom(ignores_case)?;
            all.push(self.repeated(node)?);
        }
        // These begin what one character may stand for, such as `ﬁ` and `ß`.
        if ignores_case
            && let [before_last @ .., _] = &all[..]
            && before_last
                .iter()
                .any(|node| node.has('s') || node.has('f'))
        {
            return Err("(?i) before s or f and another letter".to_owned());
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Node::Concat(all),
        })
    }

    fn atom(&mut self, ignores_case: bool) -> Result<Node, String> {
        let set = match self.next()? {
            '(' => return self.group(ignores_case),
            '[' => return self.class(ignores_case).map(Node::Char),
            '\\' => self.escaped()?,
            '.' => CharSet::of_char('\n').negated(),
            '$' => {
                return Ok(Node::LookAhead {
                    set: CharSet::of_char('\n'),
                    or_end: true,
                });
            }
            char @ ('^' | '*' | '+' | '?' | '{' | '}' | ']') => {
                return Err(format!("{char:?} that is not escaped"));
            }
            char => CharSet::of_char(char),
        };
        Ok(Node::Char(if ignores_case { folded(set)? } else { set }))
    }

    /// A group, after its parenthesis.
    fn group(&mut self, ignores_case: bool) -> Result<Node, String> {
        self.deeper()?;
        let mut ignores_case = ignores_case;
        let mut looks_ahead = None;
        if self.rest.next_if_eq(&'?').is_some() {
            match self.next()? {
                ':' => {}
                'i' if self.rest.next_if_eq(&':').is_some() => ignores_case = true,
                '=' => looks_ahead = Some(true),
                '!' => looks_ahead = Some(false),
                char => return Err(format!("the group (?{char}")),
            }
        }
        let node = self.alternatives(ignores_case)?;
        if self.next()? != ')' {
            return Err("a group that is not closed".to_owned());
        }
        self.depth -= 1;
        match (looks_ahead, node) {
            (None, node) => Ok(node),
            (Some(true), Node::Char(set)) => Ok(Node::LookAhead { set, or_end: false }),
            (Some(false), Node::Char(set)) => Ok(Node::LookAhead {
                set: set.negated(),
                or_end: true,
            }),
            _ => Err("a look-ahead at more than one character".to_owned()),
        }
    }

    /// A class, after its bracket.
    fn class(&mut self, ignores_case: bool) -> Result<CharSet, String> {
        self.deeper()?;
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut whole: Option<CharSet> = None;
        let mut part = CharSet::default();
        let mut is_first = true;
        loop {
            let set = match self.next()? {
                ']' if is_first => return Err("the class []".to_owned()),
                ']' => break,
                '&' if self.rest.next_if_eq(&'&').is_some() => {
                    if part.ranges().is_empty() || self.rest.peek() == Some(&']') {
                        return Err("an intersection with nothing in a class".to_owned());
                    }
                    whole = Some(whole.map_or(part.clone(), |whole| whole.intersection(&part)));
                    part = CharSet::default();
                    continue;
                }
                '[' if self.rest.peek() == Some(&':') => return Err("the class [:".to_owned()),
                '[' => self.class(ignores_case)?,
                '-' if !is_first && self.rest.peek() != Some(&']') => {
                    return Err("a hyphen that is not escaped in a class".to_owned());
                }
                '\\' => {
                    let set = self.escaped()?;
                    self.range_from(set)?
                }
                char => self.range_from(CharSet::of_char(char))?,
            };
            is_first = false;
            part = part.union(&set);
        }
        self.depth -= 1;
        let set = whole.map_or(part.clone(), |whole| whole.intersection(&part));
        match (ignores_case, is_negated) {
            (true, true) => Err("a negated class in (?i)".to_owned()),
            (true, false) => folded(set),
            (false, true) => Ok(set.negated()),
            (false, false) => Ok(set),
        }
    }

    /// The range that starts with this character, or the set itself if no range follows.
    fn range_from(&mut self, set: CharSet) -> Result<CharSet, String> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || matches!(ahead.peek(), Some(']') | None) {
            return Ok(set);
        }
        self.rest = ahead;
        let end = match self.next()? {
            '\\' => self.escaped()?,
            '[' => return Err("a hyphen before [ in a class".to_owned()),
            char => CharSet::of_char(char),
        };
        match (set.ranges(), end.ranges()) {
            (&[(first, same)], &[(last, also)])
                if first == same && last == also && first <= last =>
            {
                Ok(CharSet::of_ranges(vec![(first, last)]))
            }
            _ => {
                Err("a range in a class that does not go from one character to another".to_owned())
            }
        }
    }

    /// What an escape stands for, after its backslash.
    fn escaped(&mut self) -> Result<CharSet, String> {
        Ok(match self.next()? {
            'n' => CharSet::of_char('\n'),
            'r' => CharSet::of_char('\r'),
            't' => CharSet::of_char('\t'),
            'f' => CharSet::of_char('\u{c}'),
            's' => CharSet::whitespace(),
            'S' => CharSet::whitespace().negated(),
            'd' => CharSet::of_property("Nd").expect("it is a property"),
            'D' => CharSet::of_property("Nd")
                .expect("it is a property")
                .negated(),
            'p' => self.property()?,
            'P' => self.property()?.negated(),
            char if char.is_ascii_punctuation() || char == ' ' => CharSet::of_char(char),
            char => return Err(format!("\\{char}")),
        })
    }

    /// A property, after `\p`.
    fn property(&mut self) -> Result<CharSet, String> {
        if self.next()? != '{' {
            return Err(r"\p without braces".to_owned());
        }
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        let mut name = String::new();
        loop {
            match self.next()? {
                '}' => break,
                char => name.push(char),
            }
        }
        let set = CharSet::of_property(&name).ok_or_else(|| format!(r"\p{{{name}}}"))?;
        Ok(if is_negated { set.negated() } else { set })
    }

    /// With the repetition that follows.
    fn repeated(&mut self, node: Node) -> Result<Node, String> {
        let (least, most) = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.rest.next();
                let (least, most) = self.interval()?;
                let repeated = self.repeat(node, least, most)?;
                return match self.rest.peek() {
                    Some('+') => {
                        self.rest.next();
                        let repeated = self.repeat(repeated, 1, None)?;
                        self.once(repeated)
                    }
                    _ => self.once(repeated),
                };
            }
            _ => return Ok(node),
        };
        self.rest.next();
        let node = match self.rest.peek() {
            Some('?') => {
                self.rest.next();
                match self.repeat(node, least, most)? {
                    Node::Repeat {
                        node, least, most, ..
                    } => Node::Repeat {
                        node,
                        least,
                        most,
                        is_lazy: true,
                    },
                    node => node,
                }
            }
            Some('+') => {
                self.rest.next();
                possessive(node, least, most)?
            }
            _ => self.repeat(node, least, most)?,
        };
        self.once(node)
    }

    fn repeat(&self, node: Node, least: u32, most: Option<u32>) -> Result<Node, String> {
        match node {
            Node::LookAhead { .. } => Err("a repeated look-ahead".to_owned()),
            node if most.is_none() && node.is_nullable() => {
                Err("a repetition of what may match nothing".to_owned())
            }
            node => Ok(Node::Repeat {
                node: Box::new(node),
                least,
                most,
                is_lazy: false,
            }),
        }
    }

    /// The node, if no other repetition follows.
    fn once(&mut self, node: Node) -> Result<Node, String> {
        match self.rest.peek() {
            Some('*' | '+' | '?' | '{') => Err("a repetition of a repetition".to_owned()),
            _ => Ok(node),
        }
    }

    /// The numbers of `{n}`, `{n,}`, `{,m}` or `{n,m}`, after its brace.
    fn interval(&mut self) -> Result<(u32, Option<u32>), String> {
        let least = self.number()?;
        let (least, most) = match self.next()? {
            '}' => (least, Some(least)),
            ',' => {
                let most = self.number()?;
                if self.next()? != '}' {
                    return Err("{ that begins no repetition".to_owned());
                }
                (least, Some(most))
            }
            _ => return Err("{ that begins no repetition".to_owned()),
        };
        match (least, most) {
            (None, Some(None)) | (None, None) => Err("{ that begins no repetition".to_owned()),
            (least, most) => {
                let (least, most) = (least.unwrap_or(0), most.flatten());
                match most {
                    Some(most) if most < least => {
                        Err("a repetition with limits in reverse".to_owned())
                    }
                    _ => Ok((least, most)),
                }
            }
        }
    }

    fn number(&mut self) -> Result<Option<u32>, String> {
        let mut number = None;
        while let Some(digit) = self.rest.peek().and_then(|char| char.to_digit(10)) {
            self.rest.next();
            number = Some(number.unwrap_or(0) * 10 + digit);
            if number > Some(MAX_REPEAT) {
                return Err(format!("a repetition of more than {MAX_REPEAT}"));
            }
        }
        Ok(number)
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} nested groups or classes"));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<char, String> {
        self.rest
            .next()
            .ok_or_else(|| "an end where something is open".to_owned())
    }
}

/// A possessive repetition of a character. All of a run are taken, so none may follow.
fn possessive(node: Node, least: u32, most: Option<u32>) -> Result<Node, String> {
    let Node::Char(set) = node else {
        return Err("a possessive repetition of more than one character".to_owned());
    };
    let none_follows = Node::LookAhead {
        set: set.negated(),
        or_end: true,
    };
    let node = Node::Char(set);
    Ok(match most {
        Some(_) => Node::Alternatives(vec![node, none_follows]),
        None => Node::Concat(vec![
            Node::Repeat {
                node: Box::new(node),
                least,
                most,
                is_lazy: false,
            },
            none_follows,
        ]),
    })
}

/// The characters that match one of these in any case.
fn folded(set: CharSet) -> Result<CharSet, String> {
    if !set.is_ascii() {
        return Err("characters beyond ASCII in (?i)".to_owned());
    }
    let ascii = ('\0'..='\x7f').filter(|&char| set.contains(char));
    let folded = ascii.flat_map(|char| {
        let beyond_ascii = match char.to_ascii_lowercase() {
            's' => Some('ſ'),
            'k' => Some('\u{212a}'),
            _ => None,
        };
        [char.to_ascii_lowercase(), char.to_ascii_uppercase()]
            .into_iter()
            .chain(beyond_ascii)
    });
    Ok(CharSet::of_chars(folded))
}
