"""Special tokens in the files next to a tokenizer: reported, or added as Transformers adds them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from extent import extent
from small_tokenizers import tokenizer_json, write_tokenizer

import packtok
from packtok import Tokenizer
from packtok.config.options import HfTokenizer
from packtok.errors import ConfigError, TokenizerError
from packtok.stream import CheckpointableDataset
from packtok.tokenizer.find import find_tokenizer, with_special_tokens
from packtok.tokenizer.neighbours import NEIGHBOUR_FILES, listed

ADD = "--add-special-tokens-from-config"
TEXT = "a<x> b <y>c<|im_end|>^d^$ <pad><unk> <s>e</s> <z>  <img> A<X> <v>"
CALL = Callable[..., Any]


def token(content: str, **flags: Any) -> dict[str, Any]:
    properties = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, **flags}
    return {"content": content, **properties}


# Files next to a tokenizer of 256 bytes with <s> = 256 and </s> = 257.
CASES: dict[str, dict[str, Any]] = {
    "roles in the order of Transformers": {
        "tokenizer_config.json": {
            "additional_special_tokens": ["<x>", "<y>"],
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "bos_token": "<s>",
            "eos_token": "<|im_end|>",
        }
    },
    "tokens of the model": {
        "tokenizer_config.json": {"additional_special_tokens": ["^", "$", "<x>"], "pad_token": "d"}
    },
    "roles without a standard": {
        "tokenizer_config.json": {
            "extra_special_tokens": {"image_token": "<img>", "x_token": "<x>"},
            "pad_token": "<pad>",
            "eos_token": "</s>",
        }
    },
    "a list by its new name": {"tokenizer_config.json": {"extra_special_tokens": ["<y>", "<x>"]}},
    "objects": {
        "tokenizer_config.json": {
            "pad_token": token("<pad>", __type="AddedToken", lstrip=True, special=True),
            "unk_token": {"__type": "AddedToken", "content": "<unk>"},
            "mask_token": token("<x>", __type="AddedToken", rstrip=True, normalized=True),
        }
    },
    "a decoder by its ids": {
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                "261": token("<y>", special=False, normalized=True),
                "256": token("<s>", special=True),
                "260": token("<x>", special=True),
                "9": token("^", special=True),
                "262": token("<z>", special=False, rstrip=True, lstrip=True),
            },
            "pad_token": "<pad>",
            "eos_token": "<y>",
        }
    },
    "a decoder changes tokens": {
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                "256": token("<s>", special=True, lstrip=True),
                "257": token("</s>", special=True, rstrip=True),
            }
        }
    },
    "a map of roles": {
        "special_tokens_map.json": {
            "pad_token": token("<pad>"),
            "eos_token": "<|im_end|>",
            "unk_token": token("<unk>", lstrip=True),
        }
    },
    "a map of roles over a config": {
        "tokenizer_config.json": {"pad_token": "<x>", "cls_token": "<y>", "eos_token": None},
        "special_tokens_map.json": {"pad_token": "<pad>", "eos_token": "</s>"},
    },
    "added tokens with their ids": {
        "tokenizer_config.json": {"additional_special_tokens": ["<y>"], "pad_token": "<pad>"},
        "added_tokens.json": {"<y>": 300, "<x>": 259, "<z>": 258, "<s>": 256},
    },
    "a decoder, so that other files are not read": {
        "tokenizer_config.json": {"added_tokens_decoder": {}, "pad_token": "<pad>"},
        "special_tokens_map.json": {"unk_token": "<unk>"},
        "added_tokens.json": {"<x>": 258},
    },
}


def write(folder: Path, files: dict[str, Any], **changes: Any) -> Path:
    write_tokenizer(folder)
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer_json(), **changes}))
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("files", CASES.values(), ids=CASES)
def test_tokens_are_added_as_transformers_adds_them(files: dict[str, Any], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    for name, changes in {"plain": {}, "lower": {"normalizer": {"type": "Lowercase"}}}.items():
        folder = write(tmp_path / name, files, **changes)
        expected = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        tokenizer = Tokenizer.from_pretrained(folder, add_special_tokens_from_config=True)
        added = {added_token.content: id for id, added_token in expected.added_tokens_decoder.items()}
        special = {
            added_token.content
            for added_token in expected.added_tokens_decoder.values()
            if added_token.special
        }
        assert dict(tokenizer.added_tokens) == added
        assert {content for content, _ in tokenizer.special_tokens} == special
        assert tokenizer.encode(TEXT).tolist() == expected(TEXT)["input_ids"]
        assert tokenizer.vocab_size == len(expected)
        assert tokenizer.eos_token == (expected.eos_token if expected.eos_token in added else None)
        assert not [note for note in tokenizer.notes if ADD in note]


def test_each_named_token_is_reported_unless_it_is_added(tmp_path: Path) -> None:
    config = {
        "additional_special_tokens": [f"<extra_{i}>" for i in range(12)],
        "pad_token": "^",
        "eos_token": "<|im_end|>",
        "bos_token": "<s>",
    }
    folder = write(
        tmp_path / "odd",
        {
            "tokenizer_config.json": config,
            "special_tokens_map.json": {"pad_token": "^", "unk_token": "<unk>"},
            "added_tokens.json": {"<x>": 300},
        },
    )
    beside = folder / "tokenizer_config.json"
    not_added = f"they are not added; give {ADD} to add them, as Transformers does"
    first = ", ".join(f"'<extra_{i}>'" for i in range(10))
    expected = [
        f"{folder}/added_tokens.json names tokens that the tokenizer does not have: '<x>'; {not_added}",
        f"{beside}: eos_token names tokens that the tokenizer does not have: '<|im_end|>'; {not_added}",
        f"{folder}/special_tokens_map.json: unk_token names tokens that the tokenizer does not have: "
        "'<unk>'; "
        f"{not_added}",
        f"{folder}/special_tokens_map.json: pad_token names tokens that the tokenizer has as ordinary tokens "
        f"only: '^'; they are not special tokens; give {ADD} to make them special, as Transformers does",
        f"{beside}: additional_special_tokens names tokens that the tokenizer does not have: {first} and 2 "
        f"more; {not_added}",
    ]
    plain = find_tokenizer(str(folder))
    assert list(plain.warnings) == expected
    assert plain.eos_token is None
    assert plain.tokenizer.vocab_size == 258
    extended = find_tokenizer(str(folder), add_special_tokens_from_config=True)
    assert extended.eos_token == "<|im_end|>"
    assert extended.tokenizer.vocab_size == 258 + 15
    assert extended.warnings == (
        f"{folder}/added_tokens.json gives '<x>' the id 300, tokenizer.json 258; tokenizer.json takes "
        "precedence",
    )


def test_tokens_that_are_matched_in_another_way_are_reported(tmp_path: Path) -> None:
    files = CASES["a decoder changes tokens"]
    loaded = find_tokenizer(str(write(tmp_path / "t", files)))
    assert loaded.warnings == (
        f"{tmp_path}/t/tokenizer_config.json: added_tokens_decoder has tokens that are matched in another "
        "way than in the tokenizer: '<s>', '</s>'; the tokenizer takes precedence; give "
        f"{ADD} to change it, as Transformers does",
    )
    assert (
        loaded.tokenizer.fingerprint
        == Tokenizer.from_file(write_tokenizer(tmp_path / "b") / "tokenizer.json").fingerprint
    )


def test_tokens_of_files_that_transformers_does_not_read_are_reported(tmp_path: Path) -> None:
    files = CASES["a decoder, so that other files are not read"]
    folder = write(tmp_path / "t", files)
    unread = "Transformers does not read this file next to added_tokens_decoder, and they are not added"
    assert find_tokenizer(str(folder), add_special_tokens_from_config=True).warnings == (
        f"{folder}/special_tokens_map.json: unk_token names tokens that the tokenizer does not have: "
        "'<unk>'; "
        f"{unread}",
        f"{folder}/added_tokens.json names tokens that the tokenizer does not have: '<x>'; {unread}",
    )


@pytest.mark.parametrize(
    "content",
    [
        '{"pad_token": "\\ud800"}',
        "[" * 100_000,
        '{"added_tokens_decoder": ' + "{" * 9,
        "\x00",
        '["a"]',
        '"a"',
    ],
    ids=["surrogate", "deep", "torn", "NUL", "array", "string"],
)
def test_file_that_cannot_be_read_is_named(tmp_path: Path, content: str) -> None:
    for name in NEIGHBOUR_FILES:
        folder = write_tokenizer(tmp_path / name)
        (folder / name).write_text(content)
        with pytest.raises(TokenizerError, match=f"^{folder}/{name}: "):
            Tokenizer.from_file(folder / "tokenizer.json")


def test_values_of_a_wrong_type_name_no_token(tmp_path: Path) -> None:
    config = {
        "eos_token": 5,
        "pad_token": [],
        "bos_token": {"content": 1},
        "additional_special_tokens": [None, {}],
    }
    decoder = {"x": {"content": "</s>", "normalized": False}, "1e999": {"content": ""}, "3": 7}
    files = {
        "tokenizer_config.json": {**config, "added_tokens_decoder": decoder},
        "added_tokens.json": {"<s>": None, "</s>": float("inf"), "": 3},
    }
    loaded = find_tokenizer(str(write(tmp_path / "t", files)), add_special_tokens_from_config=True)
    assert loaded.tokenizer.vocab_size == 258
    assert loaded.eos_token is None


def test_padding_of_the_tokenizer_names_a_token(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>"}
    config = {"tokenizer_config.json": {"additional_special_tokens": ["<x>"], "eos_token": "</s>"}}
    folder = write(tmp_path / "t", config, padding=padding)
    expected = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    tokenizer = Tokenizer.from_pretrained(folder, add_special_tokens_from_config=True)
    assert dict(tokenizer.added_tokens) == expected.get_added_vocab()


def test_consistent_files_change_nothing(tmp_path: Path) -> None:
    config = {"bos_token": "<s>", "eos_token": token("</s>"), "added_tokens_decoder": {}}
    config["added_tokens_decoder"] = {"256": token("<s>", special=True), "257": token("</s>", special=True)}
    folder = write(tmp_path / "t", {"tokenizer_config.json": config})
    plain, extended = (
        Tokenizer.from_pretrained(folder, add_special_tokens_from_config=adds) for adds in (False, True)
    )
    assert plain.to_json() == extended.to_json() == (folder / "tokenizer.json").read_bytes()
    assert plain.notes == extended.notes == []


LOADERS: dict[str, CALL] = {
    "from_file": lambda folder, **options: Tokenizer.from_file(folder / "tokenizer.json", **options),
    "from_pretrained": lambda folder, **options: Tokenizer.from_pretrained(folder, **options),
    "from_pretrained of the file": lambda folder, **options: Tokenizer.from_pretrained(
        folder / "tokenizer.json", **options
    ),
}


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_every_way_to_load_a_file_finds_those_next_to_it(tmp_path: Path, load: CALL) -> None:
    config = {"eos_token": "</s>", "pad_token": "<pad>"}
    folder = write(tmp_path / "t", {"tokenizer_config.json": config})
    with pytest.warns(UserWarning, match=f"pad_token names tokens .*'<pad>'.*{ADD}") as caught:
        plain = load(folder)
    assert [warning.filename for warning in caught] == [__file__]
    extended = load(folder, add_special_tokens_from_config=True)
    assert plain.eos_token == extended.eos_token == "</s>"
    assert (plain.token_to_id("<pad>"), extended.token_to_id("<pad>")) == (None, 258)
    assert (len(plain.notes), extended.notes) == (1, [])
    assert extended.as_hf().eos_token_id == 257


def test_built_in_tokenizers_know_their_eos() -> None:
    for name in extent(Tokenizer.builtin_names(), ["gpt2"]):
        by_name = Tokenizer.from_pretrained(name)
        assert Tokenizer.builtin(name).eos_token == by_name.eos_token == "<|endoftext|>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a tokenizer whose config names two tokens that it lacks, and one of its model."""
    config = {"additional_special_tokens": ["<x>", "^"], "eos_token": "<|im_end|>"}
    return write(tmp_path / "mine", {"tokenizer_config.json": config})


def write_corpus(path: Path) -> list[str]:
    texts = ["a<x> b^c", "^^<|im_end|>", "plain text"]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return texts


def test_every_command_adds_the_tokens(tmp_path: Path, folder: Path, packtok_cli: CALL) -> None:
    texts = write_corpus(tmp_path / "corpus.jsonl")
    tokenizer = Tokenizer.from_pretrained(folder, add_special_tokens_from_config=True)
    ids = [tokenizer.encode(text).tolist() for text in texts]
    assert ids[0] == [64, 259, 220, 65, 9 + 52, 66]
    options = ("--tokenizer", folder, ADD)
    packed = packtok_cli("pack", "-i", "corpus.jsonl", "-o", "a.pbin", *options, "--json", cwd=tmp_path)
    assert json.loads(packed.stdout)["warnings"] == []
    reader = packtok.PbinReader(tmp_path / "a.pbin")
    eos = tokenizer.token_to_id("<|im_end|>")
    # The second text ends with EOD itself.
    assert [document.tolist() for document in reader] == [[*ids[0], eos], ids[1], [*ids[2], eos]]
    assert reader.metadata is not None
    assert reader.metadata["tokenizer"]["fingerprint"] == tokenizer.fingerprint
    assert (tmp_path / "a.pbin.tokenizer.json").read_bytes() == tokenizer.to_json()
    packtok_cli("verify", "a.pbin", *options, cwd=tmp_path)
    packtok_cli("cat", "a.pbin", *options, cwd=tmp_path)
    counted = json.loads(packtok_cli("count", "corpus.jsonl", *options, "--json", cwd=tmp_path).stdout)
    assert counted["total"]["tokens"] == [sum(map(len, ids))]
    packtok_cli("tokenizer", "verify", folder, ADD, "--corpus", "corpus.jsonl", cwd=tmp_path)
    facts = json.loads(packtok_cli("tokenizer", "inspect", folder, ADD, "--json", cwd=tmp_path).stdout)
    assert (facts["fingerprint"], facts["eos_token"]) == (tokenizer.fingerprint, "<|im_end|>")
    samples = CheckpointableDataset.from_files(tmp_path / "corpus.jsonl")
    samples = samples.tokenize(str(folder), add_special_tokens_from_config=True)
    assert [list(sample["input_ids"]) for sample in samples] == ids


def test_shards_need_the_same_flag(tmp_path: Path, folder: Path, packtok_cli: CALL) -> None:
    write_corpus(tmp_path / "corpus.jsonl")
    common = ("-i", "corpus.jsonl", "-o", "shards", "--tokenizer", folder)
    packtok_cli("plan", *common, ADD, "--shards", "2", cwd=tmp_path)
    refused = packtok_cli("pack", *common, "--eod", "</s>", "--shard", "0/2", cwd=tmp_path, code=1)
    assert "tokenizer" in refused.stderr
    for shard in ("0/2", "1/2"):
        packtok_cli("pack", *common, ADD, "--shard", shard, cwd=tmp_path)


def test_hub_has_the_same_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repository, revision = tmp_path / "models--some--model", "0" * 40
    write(
        repository / "snapshots" / revision,
        {"special_tokens_map.json": {"eos_token": "</s>"}, "added_tokens.json": {"<x>": 258}},
    )
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision)
    loaded = find_tokenizer("some/model")
    assert loaded.eos_token == "</s>"
    assert [ADD in text for text in loaded.warnings] == [True]
    assert find_tokenizer("some/model", True).tokenizer.token_to_id("<x>") == 258


def special(**special_tokens: Any) -> HfTokenizer:
    adds = special_tokens.pop("adds", False)
    return HfTokenizer(
        pretrained_model_name_or_path="t",
        special_tokens=special_tokens,
        add_special_tokens_from_config=adds,
    )


@pytest.mark.parametrize("normalizer", [None, {"type": "Lowercase"}])
def test_special_tokens_of_a_config_become_special_as_in_transformers(
    tmp_path: Path, normalizer: Any
) -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    own = tokenizer_json()["added_tokens"]
    own.append({**own[0], "id": 258, "content": "<x>", "special": False, "normalized": True, "lstrip": True})
    folder = write(tmp_path / "t", {}, added_tokens=own, normalizer=normalizer)
    named = {"additional_special_tokens": ["^", "$"], "pad_token": "<x>", "eos_token": "</s>"}
    expected = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    expected.add_special_tokens(named)
    tokenizer = with_special_tokens(find_tokenizer(str(folder)), special(**named)).tokenizer
    assert tokenizer.encode(TEXT).tolist() == expected(TEXT)["input_ids"]
    assert dict(tokenizer.special_tokens) == expected.get_added_vocab()
    assert tokenizer.vocab_size == len(expected) == 259


def test_special_tokens_of_a_config_are_in_the_output(tmp_path: Path, packtok_cli: CALL) -> None:
    folder = write(tmp_path / "t", {"tokenizer_config.json": {"eos_token": "</s>"}})
    texts = write_corpus(tmp_path / "corpus.jsonl")
    config = {
        "settings": {"src_path": "corpus.jsonl", "dst_path": "a.pbin", "jq_pattern": ".text"},
        "tokenizer": {
            "component_key": "tokenizer",
            "variant_key": "pretrained_hf_tokenizer",
            "config": {
                "pretrained_model_name_or_path": str(folder),
                "special_tokens": {"additional_special_tokens": ["^", "$"]},
            },
        },
    }
    (tmp_path / "pack.yaml").write_text(json.dumps(config))
    packtok_cli("data", "pack_encoded_data", "pack.yaml", cwd=tmp_path)
    written = Tokenizer.from_file(tmp_path / "a.pbin.tokenizer.json")
    assert dict(written.special_tokens) == {"<s>": 256, "</s>": 257, "^": 61, "$": 3}
    reader = packtok.PbinReader(tmp_path / "a.pbin")
    assert reader.metadata is not None
    assert reader.metadata["tokenizer"]["fingerprint"] == written.fingerprint
    assert reader[0].tolist() == [*written.encode(texts[0]), 257]


def test_special_tokens_of_a_config_grow_the_vocabulary_only_when_asked(tmp_path: Path) -> None:
    loaded = find_tokenizer(str(write(tmp_path / "t", {})))
    named = {"pad_token": "<pad>", "additional_special_tokens": ["^", "<x>"]}
    with pytest.raises(ConfigError) as caught:
        with_special_tokens(loaded, special(**named))
    assert str(caught.value) == (
        "tokenizer.config.special_tokens names '<pad>', '<x>', which would grow the vocabulary of t; give "
        f"{ADD} to add it, or leave it out; special tokens are '<s>', '</s>'"
    )
    grown = with_special_tokens(loaded, special(**named, adds=True)).tokenizer
    assert dict(grown.added_tokens) == {"<s>": 256, "</s>": 257, "<pad>": 258, "^": 61, "<x>": 259}


def test_special_tokens_that_are_matched_in_another_way_keep_it(tmp_path: Path) -> None:
    own = tokenizer_json()["added_tokens"]
    own[0]["lstrip"] = True
    loaded = find_tokenizer(str(write(tmp_path / "t", {}, added_tokens=own)))
    kept = with_special_tokens(loaded, special(bos_token="<s>"))
    assert kept.tokenizer.fingerprint == loaded.tokenizer.fingerprint
    assert kept.warnings == (
        "tokenizer.config.special_tokens names special tokens that are matched in another way in the "
        "tokenizer: "
        f"'<s>'; the tokenizer takes precedence; give {ADD} to change it, as Transformers does",
    )
    changed = with_special_tokens(loaded, special(bos_token="<s>", adds=True)).tokenizer
    assert changed.encode("a <s>").tolist() == [64, 220, 256]


def test_post_processor_names_the_eod_if_no_file_does(tmp_path: Path, packtok_cli: CALL) -> None:
    sequence, last = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}
    processor = {
        "type": "TemplateProcessing",
        "single": [sequence, last],
        "pair": [sequence, last, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"</s>": {"id": "</s>", "ids": [257], "tokens": ["</s>"]}},
    }
    folder = write(tmp_path / "t5", {}, post_processor=processor)
    write_corpus(tmp_path / "corpus.jsonl")
    packtok_cli("pack", "-i", "corpus.jsonl", "-o", "a.pbin", "--tokenizer", folder, cwd=tmp_path)
    reader = packtok.PbinReader(tmp_path / "a.pbin")
    # EOD occurs once, although the post-processor has appended it.
    assert [document.tolist().count(257) for document in reader] == [1, 1, 1]
    assert all(document[-1] == 257 for document in reader)


def test_messages_list_at_most_ten_special_tokens(tmp_path: Path, packtok_cli: CALL) -> None:
    own = tokenizer_json()["added_tokens"]
    own += [{**own[0], "id": 258 + i, "content": f"<extra_{i}>"} for i in range(101)]
    folder = write(tmp_path / "t", {}, added_tokens=own)
    write_corpus(tmp_path / "corpus.jsonl")
    ten = ["<s>", "</s>", *(f"<extra_{i}>" for i in range(8))]
    for options, names in ([], ", ".join(map(repr, ten))), (["--eod", "no"], ", ".join(map(json.dumps, ten))):
        done = packtok_cli(
            "pack", "-i", "corpus.jsonl", "-o", "a.pbin", "-t", folder, *options, cwd=tmp_path, code=None
        )
        assert done.stderr.rstrip().endswith(f"special tokens are {names} and 93 more")
    assert listed(["a"]) == "'a'"
    assert listed([]) == "none"
