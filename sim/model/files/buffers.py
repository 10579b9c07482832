"""Tensors that are no parameters, by their names: what PyTorch calls buffers, and what quantisation adds."""

from __future__ import annotations

import re

STATISTICS = ("running_mean", "running_var", "moving_mean", "moving_variance", "moving_var")
MOVING = "moving means and variances"
# Masks: GPT-2, GPT-Neo, GPT-NeoX and GPT-J of transformers, minGPT and nanoGPT, Swin. Positions: rotary embeddings, PyTorch's tutorial on
# transformers. Constants: SAM, Whisper, YOLO, samplers of diffusion models. Factors: spectral normalisation and pruning of PyTorch.
BUFFERS = {
    "masks": r"masked_bias|causal_mask|attn_mask|attention_mask|mask|tril|triu|weight_mask|bias_mask",
    "positions": r"inv_freq|original_inv_freq|position_ids|freqs_cis|(?:cos|sin)_(?:cached?|embed)|pe|relative_coords_table"
    r"|relative_position_index",
    "constants": r"pixel_mean|pixel_std|mel_filters|anchors|anchor_grid|stride|total_ops|total_params|betas|lvlb_weights"
    r"|(?:sqrt_|log_)?(?:recip_|recipm1_|one_minus_)*alphas_cumprod(?:_prev)?|sqrt_recipm1_alphas_cumprod|posterior_\w+",
    "factors of spectral normalisation": r"weight_[uv]|_[uv]",
    "state of an optimiser": r"exp_avg|exp_avg_sq|momentum_buffer",
}
KINDS = {kind: re.compile(names) for kind, names in BUFFERS.items()}
ROTARY = re.compile(r"(?:^|\.)(?:rope|rotary_emb|rotary)\.freqs$")
AVERAGES = re.compile(r"^(?:model_ema|ema_model|ema)\.")
MASK_OF_ATTENTION = re.compile(r"(?:^|\.)(?:attn|attention|self_attn)\.bias$")
SCALES = re.compile(
    r"_?scales?|q_scale_max|biases|zeros|zero_points?|SCB|(?:nested_)?(?:absmax|quant_map)|(?:weight|input|activation|k|v)_scale(?:_inv|_2)?|input_amax"
    r"|(?:weight_|input_)?zero_point"
)


def last(name: str) -> str:
    """The last part of a name."""
    return name.replace("/", ".").rpartition(".")[2]


def before(name: str) -> str:
    """All but the last part."""
    return name.replace("/", ".").rpartition(".")[0]


def is_statistic(name: str) -> bool:
    """Whether it is a moving mean or variance of batch normalisation."""
    return last(name) in STATISTICS


def kind(name: str, shape: tuple[int, ...]) -> str:
    """The kind of buffer that a tensor is by its name, as text; empty if it is none."""
    if MASK_OF_ATTENTION.search(name) and len(shape) == 4 and shape[-1] == shape[-2]:
        return "masks"
    if ROTARY.search(name):
        return "positions"
    if AVERAGES.match(name):
        return "moving averages of the weights"
    return next((kind for kind, names in KINDS.items() if names.fullmatch(last(name))), "")
