//! Packing from end to end, with a tokenizer that needs no file.

mod made;
mod output;
mod resumed;
