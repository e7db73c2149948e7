"""Configs: the meaning of a Modalities config, the messages for invalid ones, and secrets."""

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

import packtok
from packtok import _packtok
from packtok.config import PackConfig, load_config
from packtok.config.redact import Redactor
from packtok.errors import ConfigError
from packtok.packer.pack_run import prepare

MODALITIES = """\
settings:
  src_path: data/${name}.jsonl
  dst_path: out/train.pbin
  index_path:
  jq_pattern: .raw_content
  num_cpus: ${node_env:num_cpus}
  eod_token: <|endoftext|>
  processing_batch_size: 10
  raw_samples_queue_size: 300
  processed_samples_queue_size: 300
  sequence_length: 2048
name: corpus
tokenizer:
  component_key: tokenizer
  variant_key: pretrained_hf_tokenizer
  config:
    pretrained_model_name_or_path: gpt2
    padding: true
    max_length: 512
"""

BY_BYTES = "packtok sizes its work by bytes; the output does not depend on it"


def minimal(**settings: Any) -> dict[str, Any]:
    return {"settings": {"src_path": "a.jsonl", "dst_path": "a.pbin", **settings}, "tokenizer": "gpt2"}


def with_tokenizer(**config: Any) -> dict[str, Any]:
    return minimal() | {"tokenizer": {"config": {"pretrained_model_name_or_path": "gpt2", **config}}}


@pytest.fixture
def modalities_file(tmp_path: Path) -> Path:
    path = tmp_path / "pack.yaml"
    path.write_text(MODALITIES)
    return path


def error_of(
    source: Any, options: dict[str, Any] | None = None, set_values: dict[str, Any] | None = None
) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(source, options, set_values)
    return str(caught.value)


def test_modalities_config_works_unchanged(modalities_file: Path) -> None:
    config = load_config(modalities_file)
    settings = config.settings
    assert settings.src_path == ("data/corpus.jsonl",)
    assert (settings.dst_path, settings.index_path) == ("out/train.pbin", None)
    assert (settings.jq_pattern, settings.eod_token) == (".raw_content", "<|endoftext|>")
    assert settings.num_cpus == _packtok.available_cpus()
    assert config.tokenizer.config.pretrained_model_name_or_path == "gpt2"
    assert config.truncate_to is None


def test_keys_without_effect_are_listed_with_the_reason(modalities_file: Path) -> None:
    assert load_config(modalities_file).ignored == (
        ("settings.processing_batch_size", BY_BYTES),
        ("settings.raw_samples_queue_size", BY_BYTES),
        ("settings.processed_samples_queue_size", BY_BYTES),
        ("settings.sequence_length", "documents are packed in full; a dataset cuts sequences when it reads"),
        ("tokenizer.config.padding", "each document is encoded alone, so none is longer"),
        ("tokenizer.config.max_length", "--truncation is off, so documents are not truncated"),
    )


@pytest.mark.parametrize(
    ("setting", "padding", "pad_to"),
    [
        (True, "longest", None),
        (False, "do_not_pad", None),
        (None, "do_not_pad", None),
        ("max_length",) * 2 + (9,),
    ],
)
def test_padding_has_the_values_of_transformers(setting: object, padding: str, pad_to: int | None) -> None:
    config = load_config(with_tokenizer(padding=setting, max_length=9))
    assert (config.tokenizer.config.padding, config.pad_to) == (padding, pad_to)
    ignored = [key for key, _ in config.ignored]
    assert ("tokenizer.config.padding" in ignored) == (setting is True)
    assert ("tokenizer.config.max_length" in ignored) == (pad_to is None)


def test_each_reason_is_reported_once(modalities_file: Path) -> None:
    notes = prepare(load_config(modalities_file)).notes
    assert notes[0] == (
        "settings.processing_batch_size, settings.raw_samples_queue_size, "
        f"settings.processed_samples_queue_size have no effect: {BY_BYTES}"
    )
    assert sum(BY_BYTES in note for note in notes) == 1


def test_defaults_match_the_documentation() -> None:
    config = load_config(minimal())
    settings = dataclasses.asdict(config.settings)
    del settings["num_cpus"]
    assert settings == {
        "src_path": ("a.jsonl",),
        "dst_path": "a.pbin",
        "index_path": None,
        "jq_pattern": ".text",
        "format": None,
        "ignore": (),
        "split": None,
        "root": None,
        "text_separator": None,
        "eod_token": None,
        "bos_token": None,
        "add_special_tokens": True,
        "enclose_all": False,
        "special_tokens_in_text": None,
        "engine": "auto",
        "token_width": "auto",
        "cache_bytes": None,
        "empty_document": "skip",
        "on_bad_document": "fail",
        "max_rejects": None,
        "source": None,
        "max_document_bytes": 1 << 30,
        "max_documents": None,
        "max_tokens": None,
        "origins": False,
        "existing": "error",
        "zstd_window_log": 27,
        "span_bytes": 16 << 20,
        "restart": False,
        "staging": None,
        "report": None,
        "processing_batch_size": None,
        "raw_samples_queue_size": None,
        "processed_samples_queue_size": None,
        "sequence_length": None,
    }


@pytest.mark.parametrize(
    ("set_values", "message"),
    [
        ({"settings.num_cpu": 3}, "settings.num_cpu is not a known key; did you mean settings.num_cpus?"),
        (
            {"tokenizer.config.trunkation": True},
            "tokenizer.config.trunkation is not a known key; did you mean tokenizer.config.truncation?",
        ),
        ({"settings.tokenzer": "gpt2"}, "settings.tokenzer is not a known key; did you mean tokenizer?"),
        ({"num_cpu": 3}, "num_cpu is not a known key; did you mean settings.num_cpus?"),
        ({"tokeniser.x": 3}, "tokeniser is not a known key; did you mean tokenizer?"),
        ({"zzz": 3}, "zzz is not a known key; known keys are settings, tokenizer"),
        ({"settings.num_cpus": "4"}, "--num-cpus: settings.num_cpus is '4'; expected an integer"),
        ({"settings.num_cpus": True}, "--num-cpus: settings.num_cpus is True; expected an integer"),
        ({"settings.num_cpus": 0}, "--num-cpus: settings.num_cpus is 0; expected at least 1"),
        ({"settings.processing_batch_size": 0}, "settings.processing_batch_size is 0; expected at least 1"),
        ({"settings.cache_bytes": 0}, "--cache-bytes: settings.cache_bytes is 0; expected at least 1"),
        (
            {"settings.zstd_window_log": 40},
            "--zstd-window-log: settings.zstd_window_log is 40; expected at most 31",
        ),
        ({"settings.eod_token": 5}, "--eod: settings.eod_token is 5; expected a string"),
        ({"settings.dst_path": ""}, "--output: settings.dst_path is ''; expected at least one character"),
        ({"settings.src_path": []}, "--input: settings.src_path is []; expected at least one path"),
        ({"settings.src_path": ["a", 1]}, "--input: settings.src_path[1] is 1; expected a string"),
        (
            {"settings.existing": "override"},
            "--existing: settings.existing is 'override'; expected 'error', 'skip' or 'replace'",
        ),
        ({"settings.dst_path": "???"}, "settings.dst_path: missing mandatory value: dst_path"),
        ({"settings.dst_path": "${nope}"}, "settings.dst_path: interpolation key 'nope' not found"),
        (
            {"settings.dst_path": "${node_env:gpus}"},
            "settings.dst_path: ${node_env:gpus} is unknown; expected num_cpus",
        ),
        (
            {"settings.dst_path": "${modalities_env:experiment_id}"},
            "settings.dst_path: ${modalities_env:experiment_id} is not available when packing; write "
            "the value itself",
        ),
        (
            {"settings.dst_path": "${modalities_env:config_file_path}"},
            "settings.dst_path: ${modalities_env:config_file_path} needs a config file",
        ),
        ({"settings": 3}, "settings is 3; expected a mapping of keys"),
        (
            {"settings.src_path": ["bad\udcff.jsonl"]},
            "--input: settings.src_path[0] is 'bad\\udcff.jsonl'; expected UTF-8; rename the file, or give "
            "its folder",
        ),
        ({"tokenizer": object()}, "--tokenizer: is of type object; expected a name or a path"),
        (
            {"tokenizer.variant_key": "pretrained_sp_tokenizer"},
            "tokenizer.config.tokenizer_model_file is missing; with variant_key pretrained_sp_tokenizer it "
            "is the path of the SentencePiece .model",
        ),
        (
            {
                "tokenizer.variant_key": "pretrained_sp_tokenizer",
                "tokenizer.config.tokenizer_model_file": "a.model",
            },
            "tokenizer.config sets two tokenizers, tokenizer_model_file and pretrained_model_name_or_path; "
            "give only one",
        ),
        (
            {"tokenizer.variant_key": "tiktoken"},
            "tokenizer.variant_key is 'tiktoken'; expected 'pretrained_hf_tokenizer' or "
            "'pretrained_sp_tokenizer'",
        ),
        (
            {"tokenizer.component_key": "sampler"},
            "tokenizer.component_key is 'sampler'; expected 'tokenizer'",
        ),
        (
            {"tokenizer.config.truncation": True},
            "--truncation: tokenizer.config.truncation is true, but max_length is not set; give "
            "--max-length, or set tokenizer.config.max_length",
        ),
        (
            {"tokenizer.config.padding": "max_length"},
            "--padding: tokenizer.config.padding is 'max_length', but max_length is not set; give "
            "--max-length, or set tokenizer.config.max_length",
        ),
        (
            {"tokenizer.config.padding": "left"},
            "--padding: tokenizer.config.padding is 'left'; expected 'do_not_pad', 'longest' or 'max_length'",
        ),
    ],
)
def test_errors_name_the_key(set_values: dict[str, Any], message: str) -> None:
    assert error_of(minimal(), None, set_values) == message


def test_missing_keys_are_named_with_their_flags() -> None:
    assert (
        error_of(None, {"tokenizer": "gpt2"})
        == "--input: is missing; give it, or settings.src_path in a config"
    )
    assert error_of({"settings": {"src_path": "a"}, "tokenizer": "gpt2"}) == (
        "--output: is missing; give it, or settings.dst_path in a config"
    )
    assert error_of({"settings": {"src_path": "a", "dst_path": "b"}}) == (
        "--tokenizer: is missing; give it, such as gpt2, or tokenizer in a config"
    )


def test_misspelled_key_is_reported_before_a_missing_one() -> None:
    assert error_of({"settings": {"src_path": "a", "dst_pth": "b"}}) == (
        "settings.dst_pth is not a known key; did you mean settings.dst_path?"
    )
    assert error_of({"settings": {"src_path": "a", "dst_path": "b", 3: 4}}).startswith(
        "settings[3] is not a known key; known keys are "
    )


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "pack.yaml"
    path.write_text("settings:\n  a: 1\n  a: 2\n")
    assert error_of(path) == f"{path}:3:3: not valid YAML: found duplicate key a"
    path.write_bytes(b"settings: \xff")
    assert error_of(path) == f"{path}: byte 10 is not UTF-8; save the config as UTF-8"
    path.write_text("- a\n- b\n")
    assert error_of(path) == f"{path}: expected a mapping of keys such as settings and tokenizer"
    path.write_text("3\n")
    assert error_of(path) == f"{path}: expected a mapping of keys, found a single value"
    with pytest.raises(FileNotFoundError):
        load_config(tmp_path / "none.yaml")


def test_top_level_key_is_allowed_only_if_it_is_referenced() -> None:
    source = minimal(dst_path="${paths.out}/a.pbin") | {"paths": {"out": "o"}}
    assert load_config(source).settings.dst_path == "o/a.pbin"
    assert (
        error_of(minimal() | {"paths": {"out": "o"}})
        == "paths is not a known key; known keys are settings, tokenizer"
    )


def test_field_and_jq_pattern_are_the_same_key() -> None:
    assert load_config(minimal(field=".a")).settings.jq_pattern == ".a"
    assert load_config(minimal(field=".a", jq_pattern=".a")).settings.jq_pattern == ".a"
    assert error_of(minimal(field=".a", jq_pattern=".b")) == (
        "settings.field is '.a' and settings.jq_pattern is '.b'; they are the same key; give only one"
    )
    overridden = load_config(minimal(jq_pattern=".a"), {"field": ".b"})
    assert overridden.settings.jq_pattern == ".b"
    for key in ("settings.jq_pattern", "settings.field"):
        assert load_config(minimal(field=".a"), None, {key: ".c"}).settings.jq_pattern == ".c"


def test_tokenizer_option_keeps_the_other_tokenizer_keys() -> None:
    config = load_config(with_tokenizer(truncation=True, max_length=7), {"tokenizer": "cl100k_base"})
    assert config.tokenizer.config.pretrained_model_name_or_path == "cl100k_base"
    assert config.truncate_to == 7


def test_special_tokens_must_exist_in_the_tokenizer() -> None:
    for known in ({"pad_token": "<|endoftext|>"}, ["<|endoftext|>"]):
        prepare(load_config(with_tokenizer(special_tokens=known)))
    with pytest.raises(ConfigError) as caught:
        prepare(load_config(with_tokenizer(special_tokens={"pad_token": "<pad>"})))
    assert str(caught.value) == (
        "tokenizer.config.special_tokens names '<pad>', which would grow the vocabulary of gpt2; give "
        "--add-special-tokens-from-config to add it, or leave it out; special tokens are '<|endoftext|>'"
    )


def test_paths_can_be_path_objects_and_lists(tmp_path: Path) -> None:
    config = load_config(minimal(src_path=[tmp_path / "a", "b"], dst_path=tmp_path / "c"))
    assert config.settings.src_path == (str(tmp_path / "a"), "b")
    assert config.settings.dst_path == str(tmp_path / "c")


def test_modalities_env_resolves_to_the_config_file(modalities_file: Path) -> None:
    config = load_config(modalities_file, {"output": "${modalities_env:config_folder_path}/x"})
    assert config.settings.dst_path == f"{modalities_file.parent}/x"
    config = load_config(modalities_file, {"output": "${modalities_env:config_file_path}.pbin"})
    assert config.settings.dst_path == f"{modalities_file}.pbin"


def test_cuda_env_gives_ranks_as_numbers_and_null_if_unset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("PACKTOK_TEST_UNSET", raising=False)
    config = load_config(
        minimal(num_cpus="${cuda_env:WORLD_SIZE}", index_path="${cuda_env:PACKTOK_TEST_UNSET}")
    )
    assert (config.settings.num_cpus, config.settings.index_path) == (3, None)
    assert error_of(minimal(num_cpus="${cuda_env:RANK}")) == (
        "settings.num_cpus: ${cuda_env:RANK} is not set in the environment"
    )


def test_resolving_restores_omegaconf_resolvers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKTOK_TEST_VALUE", "value")
    with warnings.catch_warnings():
        # OmegaConf 2.4 has another name for this function; earlier versions use that name for an older
        # function.
        warnings.simplefilter("ignore")
        OmegaConf.register_new_resolver("node_env", lambda name: f"mine:{name}")
    try:
        assert load_config(minimal(num_cpus="${node_env:num_cpus}")).settings.num_cpus >= 1
        assert OmegaConf.create({"a": "${node_env:x}"}).a == "mine:x"
        assert OmegaConf.create({"a": "${oc.env:PACKTOK_TEST_VALUE}"}).a == "value"
    finally:
        OmegaConf.clear_resolver("node_env")
    load_config(minimal(num_cpus="${node_env:num_cpus}"))
    assert not OmegaConf.has_resolver("node_env")
    assert not OmegaConf.has_resolver("cuda_env")


def test_values_from_the_environment_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKTOK_TEST_SECRET", "hunter2hunter2")
    config = load_config(
        minimal(dst_path="/${cuda_env:PACKTOK_TEST_SECRET}/${oc.env:PACKTOK_TEST_SECRET}.pbin")
    )
    assert config.settings.dst_path == "/hunter2hunter2/hunter2hunter2.pbin"
    assert config.redactions == (("hunter2hunter2", "${oc.env:PACKTOK_TEST_SECRET}"),)
    assert "hunter2" not in config.to_yaml() + repr(config)
    assert error_of(minimal(num_cpus="${cuda_env:PACKTOK_TEST_SECRET}")) == (
        "--num-cpus: settings.num_cpus is '${cuda_env:PACKTOK_TEST_SECRET}'; expected an integer"
    )


def test_credentials_in_urls_are_never_shown() -> None:
    url = "s3://user:password@host/data/a.jsonl?signature=abc"
    config = load_config(minimal(src_path=[url]))
    assert config.settings.src_path == (url,)
    assert config.redactions == ((url, "s3://***@host/data/a.jsonl"),)
    assert "password" not in config.to_yaml() + repr(config)
    assert "signature" not in config.to_yaml() + repr(config)


def test_redaction_covers_urls_and_prefers_the_longest_secret() -> None:
    redactor = Redactor((("secret", "A"), ("secret-long", "B"), ("no", "C")))
    assert redactor("secret-long secret no") == "B A no"
    assert redactor("see https://u:p@h:1/x?a=b, or 'gs://b/k?t=1'") == "see https://***@h:1/x, or 'gs://b/k'"
    assert redactor("a@b.c 3 > 2? yes") == "a@b.c 3 > 2? yes"
    assert redactor.tree({"a": ["secret", 1, ("secret",)]}) == {"a": ["A", 1, ("A",)]}
    assert repr(redactor) == "Redactor(2 secrets)"


def test_exceptions_and_their_causes_are_redacted() -> None:
    redactor = Redactor((("secret", "***"),))
    failure = FileNotFoundError(2, "no secret", "/secret/a")
    failure.__cause__ = ValueError("in secret")
    with pytest.raises(FileNotFoundError) as caught, redactor.guard():
        raise failure
    assert str(caught.value) == "[Errno 2] no ***: '/***/a'"
    assert str(caught.value.__cause__) == "in ***"


def test_printed_config_is_equivalent(modalities_file: Path) -> None:
    config = load_config(modalities_file, {"max_tokens": 12})
    again = load_config(yaml.safe_load(config.to_yaml()))
    assert (again.settings.max_tokens, again.settings.src_path) == (12, config.settings.src_path)
    assert again.to_yaml() == config.to_yaml()


def test_config_is_frozen() -> None:
    config = load_config(minimal())
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.settings.num_cpus = 3
    assert isinstance(config, PackConfig)


def test_unknown_options_of_pack_are_named() -> None:
    with pytest.raises(TypeError) as caught:
        packtok.pack(outptu="x")  # type: ignore[call-arg]
    assert str(caught.value) == "packtok.pack() has no option 'outptu'; did you mean 'output'?"


def test_options_become_keys_of_a_config_and_set_values_replace_them() -> None:
    options = {"input": "a", "output": "o", "tokenizer": "gpt2", "eod": "x", "max_length": 4, "bos": None}
    config = load_config(None, options, {"settings.eod_token": "y", "tokenizer.config.max_length": None})
    assert (config.settings.src_path, config.settings.eod_token) == (("a",), "y")
    assert config.settings.bos_token is None
    assert config.tokenizer.config.max_length is None
