//! The engine for BPE, see `engine`.

mod added_tokens;
mod alphabet;
mod beginnings;
mod bpe;
mod engine;
mod isolated_tokens;
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
pub(super) use self::merge::{MAX_IDS, MergeHeap, MergeRules};
pub(super) use self::model::{Model, Spelling, is_inside, last_char};
pub(super) use self::preprocessing::{is_byte_level, steps_between_white_space};
pub(crate) use self::scratch::Scratch;
pub(crate) use self::split::{
    CL100K_PATTERN, GPT2_PATTERN, KIMI_K2_PATTERN, O200K_PATTERN, QWEN_PATTERN,
};
pub(super) use self::split::{Steps, StepsProgress};
