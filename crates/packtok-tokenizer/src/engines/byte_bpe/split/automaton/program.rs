//! Instructions for a pattern, as in Thompson's construction; of two ways, the first is preferred.

use std::collections::HashMap;

use super::char_set::CharSet;
use super::syntax::Node;

/// More instructions are refused: the automaton can have as many states as there are sets of them.
const MAX_INSTRUCTIONS: usize = 2000;

/// The sets of a pattern: each has one bit of a signature.
const MAX_SETS: usize = 128;

/// The number of an instruction.
pub(super) type Address = u32;

#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    /// Reads a character of the set, then continues there.
    Char(usize, Address),
    /// Continues there if the next character is in the set; `or_end`: or if the text ends.
    LookAhead {
        set: usize,
        or_end: bool,
        next: Address,
    },
    /// Continues at the first, or else at the second.
    Either(Address, Address),
    Match,
}

/// A pattern as instructions.
pub(super) struct Program {
    pub(super) instructions: Vec<Instruction>,
    pub(super) start: Address,
}

/// The sets of characters of one or several programs, each once.
#[derive(Default)]
pub(super) struct Sets {
    all: Vec<CharSet>,
    numbers: HashMap<CharSet, usize>,
}

impl Sets {
    fn number(&mut self, set: &CharSet) -> Result<usize, String> {
        if let Some(&number) = self.numbers.get(set) {
            return Ok(number);
        }
        if self.all.len() == MAX_SETS {
            return Err(format!("more than {MAX_SETS} sets of characters"));
        }
        self.numbers.insert(set.clone(), self.all.len());
        self.all.push(set.clone());
        Ok(self.all.len() - 1)
    }

    pub(super) fn as_slice(&self) -> &[CharSet] {
        &self.all
    }
}

impl Program {
    /// # Errors
    /// The pattern is too large.
    pub(super) fn new(node: &Node, sets: &mut Sets) -> Result<Self, String> {
        let mut program = Self {
            instructions: vec![Instruction::Match],
            start: 0,
        };
        program.start = program.push_node(node, 0, sets)?;
        Ok(program)
    }

    fn push(&mut self, instruction: Instruction) -> Result<Address, String> {
        if self.instructions.len() == MAX_INSTRUCTIONS {
            return Err("too many repetitions".to_owned());
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() as Address - 1)
    }

    /// Adds a node that continues at `next`, and returns its start.
    fn push_node(
        &mut self,
        node: &Node,
        next: Address,
        sets: &mut Sets,
    ) -> Result<Address, String> {
        match node {
            Node::Char(set) => self.push(Instruction::Char(sets.number(set)?, next)),
            &Node::LookAhead { ref set, or_end } => {
                let set = sets.number(set)?;
                self.push(Instruction::LookAhead { set, or_end, next })
            }
            Node::Concat(nodes) => {
                let mut nodes = nodes.iter().rev();
                nodes.try_fold(next, |next, node| self.push_node(node, next, sets))
            }
            Node::Alternatives(nodes) => {
                let mut start = None;
                for node in nodes.iter().rev() {
                    let first = self.push_node(node, next, sets)?;
                    start = Some(match start {
                        None => first,
                        Some(others) => self.push(Instruction::Either(first, others))?,
                    });
                }
                Ok(start.unwrap_or(next))
            }
            Node::Repeat {
                node,
                least,
                most,
                is_lazy,
            } => {
                let either = |more, done| {
                    if *is_lazy {
                        Instruction::Either(done, more)
                    } else {
                        Instruction::Either(more, done)
                    }
                };
                let mut start = next;
                match most {
                    Some(most) => {
                        for _ in *least..*most {
                            let more = self.push_node(node, start, sets)?;
                            start = self.push(either(more, next))?;
                        }
                    }
                    None => {
                        let again = self.push(either(next, next))?;
                        let more = self.push_node(node, again, sets)?;
                        self.instructions[again as usize] = either(more, next);
                        start = again;
                    }
                }
                (0..*least).try_fold(start, |start, _| self.push_node(node, start, sets))
            }
        }
    }
}
