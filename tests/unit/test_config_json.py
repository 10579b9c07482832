"""Models from the config.json of Hugging Face: their numbers, and what is refused."""

from __future__ import annotations

import json

import pytest

from sim.base.errors import WrongSetting
from sim.model import modules, workload

LLAMA = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
LLAMA |= {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False}
LLAMA |= {"max_position_embeddings": 131072, "rope_theta": 5e5, "architectures": ["LlamaForCausalLM"]}
QWEN2 = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "vocab_size": 151936,
}
QWEN2 |= {"num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True}
GPT2 = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024, "vocab_size": 50257}


def made(folder, config):
    (folder / "config.json").write_text(json.dumps(config))
    return modules.read(str(folder / "config.json"))


@pytest.mark.parametrize(("config", "name"), [(LLAMA, "llama3_8b"), (QWEN2, "qwen2.5_0.5b"), (GPT2, "gpt2_medium")])
def test_a_configuration_has_the_variables_of_the_model_that_it_is_of(config, name, tmp_path):
    found, notes = made(tmp_path, config)
    known = workload.read(name)
    assert found.variables == known.variables
    assert (found.flops_per_sample, found.sample_shape) == (known.flops_per_sample, known.sample_shape)
    assert (found.kind, found.classes, found.inputs) == ("decoder", known.classes, "words")
    assert found.name == tmp_path.name
    assert ("131,072" in " ".join(notes)) == (config is LLAMA)
    found.write(tmp_path / "made.toml")
    assert workload.read(str(tmp_path / "made.toml")) == found


def test_experts_are_all_variables_and_the_chosen_ones_are_computed(tmp_path):
    mixtral = LLAMA | {"model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2}
    found, _ = made(tmp_path, mixtral)
    assert found.parameters == 46_702_792_704  # mistralai/Mixtral-8x7B-v0.1
    assert found.flops_per_sample == pytest.approx(2 * 4096 * 12.9e9, rel=0.1)  # "12.9B active", and attention


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"model_type": "deberta"},
            "model_type: given 'deberta'; allowed: gpt2, llama, mistral, mixtral, qwen2, qwen3",
        ),
        ({"model_type": None}, "model_type: missing"),
        ({"hidden_size": None}, "hidden_size: missing"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers: given 1000000000"),
        ({"num_hidden_layers": -1}, "num_hidden_layers: given -1"),
        ({"vocab_size": "many"}, "vocab_size: given 'many'"),
        ({"mlp_bias": True}, "mlp_bias: given True; allowed: False"),
        ({"num_attention_heads": 33}, "num_attention_heads: given 33"),
    ],
)
def test_a_configuration_that_is_none(wrong, said, tmp_path):
    with pytest.raises(WrongSetting) as refused:
        made(tmp_path, LLAMA | wrong)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("config", [{}, [], 3, {"weight_map": {}}])
def test_another_file_in_json(config, tmp_path):
    with pytest.raises(WrongSetting, match=r"config\.json"):
        made(tmp_path, config)


def test_the_command_writes_the_model_and_says_what_was_cut(tmp_path, monkeypatch, here):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    done = here("sim.workloads", "from", "config.json", "-o", "made.toml")
    assert done.stdout.startswith("note: sequences of 4,096 words, where the model can read 131,072")
    assert workload.read("made.toml") == modules.read("config.json")[0]
    assert here("sim.workloads", "from", "config.json").stdout.startswith((tmp_path / "made.toml").read_text())


@pytest.mark.parametrize("name", ["m.pt", "nowhere.json", "folder", "\0"])
def test_files_that_are_none(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "m.pt").write_bytes(b"\x80\x02")
    with pytest.raises(WrongSetting, match="from: given"):
        modules.read(name)
