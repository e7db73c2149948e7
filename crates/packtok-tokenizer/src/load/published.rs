//! Rank files that models are published with, recognized by their SHA-256, and what such a file does not contain: the
//! split pattern and the special tokens. Both are as the code that is published with the model sets them.

use sha2::{Digest, Sha256};

use super::fingerprint::hex;
use crate::engines::byte_bpe::{
    CL100K_PATTERN, GPT2_PATTERN, KIMI_K2_PATTERN, O200K_PATTERN, QWEN_PATTERN,
};

/// A published rank file.
pub(super) struct Published {
    pub(super) name: &'static str,
    sha256: &'static str,
    pub(super) pattern: &'static str,
    /// Whether texts are normalized to NFC.
    pub(super) is_nfc: bool,
    pub(super) special_tokens: fn() -> Vec<(String, u32)>,
}

pub(super) const PUBLISHED: [Published; 5] = [
    Published {
        name: "Whisper (multilingual, 99 languages)",
        sha256: "b34b360dbb493e781e479794586d661700670d65564001f23024971d1f2fa126",
        pattern: GPT2_PATTERN,
        is_nfc: false,
        special_tokens: of_whisper,
    },
    Published {
        name: "Llama 3",
        sha256: "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
        pattern: CL100K_PATTERN,
        is_nfc: false,
        special_tokens: of_llama_3,
    },
    Published {
        name: "Llama 4",
        sha256: "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed",
        pattern: O200K_PATTERN,
        is_nfc: false,
        special_tokens: of_llama_4,
    },
    Published {
        name: "Kimi K2",
        sha256: "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103",
        pattern: KIMI_K2_PATTERN,
        is_nfc: false,
        special_tokens: of_kimi_k2,
    },
    Published {
        name: "Qwen",
        sha256: "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
        pattern: QWEN_PATTERN,
        is_nfc: true,
        special_tokens: of_qwen,
    },
];

/// The published file with these bytes.
pub(super) fn published(file: &[u8]) -> Option<&'static Published> {
    let sha256 = hex(&Sha256::digest(file));
    PUBLISHED
        .iter()
        .find(|published| published.sha256 == sha256)
}

/// Consecutive ids from `first` on.
fn numbered(first: u32, names: impl IntoIterator<Item = String>) -> Vec<(String, u32)> {
    names.into_iter().zip(first..).collect()
}

fn each(names: &[&str]) -> impl Iterator<Item = String> {
    names.iter().map(|&name| name.to_owned())
}

/// Reserved tokens with numbers from `first` on.
fn reserved(kind: &str, first: usize, count: usize) -> impl Iterator<Item = String> {
    (first..first + count).map(move |number| format!("<|{kind}reserved_special_token_{number}|>"))
}

/// With 99 languages, as all multilingual models before large-v3.
fn of_whisper() -> Vec<(String, u32)> {
    const LANGUAGES: &str = "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no \
        th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo \
        so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su";
    let tasks = [
        "<|translate|>",
        "<|transcribe|>",
        "<|startoflm|>",
        "<|startofprev|>",
        "<|nospeech|>",
        "<|notimestamps|>",
    ];
    // From 0 to 30 seconds, in steps of 20 ms.
    let timestamps = (0..=1500).map(|n| format!("<|{}.{:02}|>", n / 50, n % 50 * 2));
    let names = each(&["<|endoftext|>", "<|startoftranscript|>"])
        .chain(
            LANGUAGES
                .split(' ')
                .map(|language| format!("<|{language}|>")),
        )
        .chain(each(&tasks))
        .chain(timestamps);
    numbered(50_257, names)
}

/// With the names of Llama 3.3; releases before it have other names for some reserved ids.
fn of_llama_3() -> Vec<(String, u32)> {
    let names = [
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|reserved_special_token_0|>",
        "<|reserved_special_token_1|>",
        "<|finetune_right_pad_id|>",
        "<|step_id|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "<|python_tag|>",
        "<|image|>",
    ];
    numbered(
        128_000,
        each(&names).chain(reserved("", 2, 256 - names.len())),
    )
}

fn of_llama_4() -> Vec<(String, u32)> {
    let names = each(&[
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|fim_prefix|>",
        "<|fim_middle|>",
        "<|fim_suffix|>",
        "<|header_start|>",
        "<|header_end|>",
        "<|eom|>",
        "<|eot|>",
        "<|step|>",
    ])
    .chain(reserved("text_post_train_", 0, 6))
    .chain(each(&[
        "<|python_start|>",
        "<|python_end|>",
        "<|finetune_right_pad|>",
    ]))
    .chain(reserved("text_post_train_", 8, 61))
    .chain(each(&["<|image_start|>", "<|image_end|>"]))
    .chain(reserved("vision_", 0, 2))
    .chain(each(&["<|tile_x_separator|>", "<|tile_y_separator|>"]))
    .chain(reserved("vision_", 2, 4))
    .chain(each(&["<|image|>"]))
    .chain(reserved("vision_", 6, 1))
    .chain(each(&["<|patch|>"]))
    .chain(reserved("vision_", 7, 1041))
    .chain(reserved("reasoning_", 0, 8))
    .chain(each(&[
        "<|reasoning_thinking_start|>",
        "<|reasoning_thinking_end|>",
    ]));
    let names: Vec<String> = names.collect();
    let num_unnamed = 2048 - names.len();
    numbered(
        200_000,
        names.into_iter().chain(reserved("", 0, num_unnamed)),
    )
}

fn of_kimi_k2() -> Vec<(String, u32)> {
    let name = |id: u32| {
        let name = match id {
            163_584 => "[BOS]",
            163_585 => "[EOS]",
            163_586 => "<|im_end|>",
            163_587 => "<|im_user|>",
            163_588 => "<|im_assistant|>",
            163_590 => "<|start_header_id|>",
            163_591 => "<|end_header_id|>",
            163_593 => "[EOT]",
            163_594 => "<|im_system|>",
            163_595 => "<|tool_calls_section_begin|>",
            163_596 => "<|tool_calls_section_end|>",
            163_597 => "<|tool_call_begin|>",
            163_598 => "<|tool_call_argument_begin|>",
            163_599 => "<|tool_call_end|>",
            163_601 => "<|im_middle|>",
            163_838 => "[UNK]",
            163_839 => "[PAD]",
            _ => return format!("<|reserved_token_{id}|>"),
        };
        name.to_owned()
    };
    (163_584..163_840).map(|id| (name(id), id)).collect()
}

fn of_qwen() -> Vec<(String, u32)> {
    let extra = (0..205).map(|number| format!("<|extra_{number}|>"));
    let names = each(&["<|endoftext|>", "<|im_start|>", "<|im_end|>"]);
    numbered(151_643, names.chain(extra))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_tokens_are_those_of_the_published_code() {
        for (name, count, some) in [
            (
                "Whisper (multilingual, 99 languages)",
                1608,
                &[
                    ("<|endoftext|>", 50_257),
                    ("<|en|>", 50_259),
                    ("<|su|>", 50_357),
                    ("<|notimestamps|>", 50_363),
                    ("<|0.00|>", 50_364),
                    ("<|0.02|>", 50_365),
                    ("<|30.00|>", 51_864),
                ][..],
            ),
            (
                "Llama 3",
                256,
                &[
                    ("<|begin_of_text|>", 128_000),
                    ("<|eot_id|>", 128_009),
                    ("<|reserved_special_token_2|>", 128_012),
                    ("<|reserved_special_token_245|>", 128_255),
                ],
            ),
            (
                "Llama 4",
                2048,
                &[
                    ("<|begin_of_text|>", 200_000),
                    ("<|header_start|>", 200_005),
                    ("<|finetune_right_pad|>", 200_018),
                    ("<|image_start|>", 200_080),
                    ("<|patch|>", 200_092),
                    ("<|reasoning_reserved_special_token_0|>", 201_134),
                    ("<|reasoning_thinking_end|>", 201_143),
                    ("<|reserved_special_token_0|>", 201_144),
                    ("<|reserved_special_token_903|>", 202_047),
                ],
            ),
            (
                "Kimi K2",
                256,
                &[
                    ("[BOS]", 163_584),
                    ("<|im_end|>", 163_586),
                    ("<|reserved_token_163589|>", 163_589),
                    ("[PAD]", 163_839),
                ],
            ),
            (
                "Qwen",
                208,
                &[
                    ("<|endoftext|>", 151_643),
                    ("<|im_start|>", 151_644),
                    ("<|extra_204|>", 151_850),
                ],
            ),
        ] {
            let file = PUBLISHED.iter().find(|file| file.name == name).unwrap();
            let tokens = (file.special_tokens)();
            assert_eq!(tokens.len(), count, "{name}");
            for (token, id) in some {
                assert!(
                    tokens.contains(&((*token).to_owned(), *id)),
                    "{name} {token}"
                );
            }
            let mut names: Vec<&str> = tokens.iter().map(|(token, _)| &**token).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{name}");
        }
    }

    #[test]
    fn a_file_with_another_byte_is_not_one() {
        assert!(published(b"IQ== 0\n").is_none());
        assert!(PUBLISHED.iter().all(|file| file.sha256.len() == 64));
    }
}
