//! The engine for BPE, see `engine`.

mod added_tokens;
mod alphabet;
mod bpe;
mod engine;
mod lookup;
mod merge;
mod misses;
mod missing_bytes;
mod model;
mod normal_form;
mod piece_bounds;
mod preprocessing;
mod resolve;
mod scratch;
mod split;
mod word_chunks;

pub(crate) use self::engine::{ByteBpe, simd_name};
pub(crate) use self::scratch::Scratch;
pub(crate) use self::split::{
    CL100K_PATTERN, GPT2_PATTERN, KIMI_K2_PATTERN, O200K_PATTERN, QWEN_PATTERN,
};
