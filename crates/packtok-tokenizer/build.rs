//! Writes a table of the tokens of each of tiktoken's encodings, because its merges take longer to derive than the rest of
//! a tokenizer takes to load. `src/load/builtin.rs` reads the tables.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use tiktoken_rs::CoreBPE;

#[path = "src/load/merges.rs"]
mod merges;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/load/merges.rs");
    // The ranks of the special tokens among the others have no bytes.
    write("r50k_base", &tiktoken_rs::r50k_base()?, 50_256, &[])?;
    write("p50k_base", &tiktoken_rs::p50k_base()?, 50_281, &[50_256])?;
    write("cl100k_base", &tiktoken_rs::cl100k_base()?, 100_256, &[])?;
    write("o200k_base", &tiktoken_rs::o200k_base()?, 199_998, &[])
}

/// Writes two little-endian u32 for each rank: the ranks that it is merged from; `u32::MAX` and its byte; or twice
/// `u32::MAX` if it has no bytes.
fn write(name: &str, bpe: &CoreBPE, num_ranks: u32, special: &[u32]) -> Result<(), Box<dyn Error>> {
    let bytes_of = |rank| {
        if special.contains(&rank) {
            Ok(Vec::new())
        } else {
            bpe.decode_bytes(&[rank])
        }
    };
    let tokens: Vec<Vec<u8>> = (0..num_ranks).map(bytes_of).collect::<Result<_, _>>()?;
    let mut merges = merges::merges(&tokens).into_iter();
    let mut table = Vec::with_capacity(8 * tokens.len());
    for (rank, token) in (0..).zip(&tokens) {
        let (left, right) = match token[..] {
            [] => (u32::MAX, u32::MAX),
            [byte] => (u32::MAX, byte.into()),
            _ => merges.next().ok_or("a token is not made of two")?,
        };
        // So that a reader can make the tokens in the order of ranks.
        if token.len() > 1 && left.max(right) >= rank {
            return Err(format!("{name}: rank {rank} is made of a higher one").into());
        }
        table.extend(left.to_le_bytes());
        table.extend(right.to_le_bytes());
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join(name), table)?;
    Ok(())
}
