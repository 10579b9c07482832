"""im2txt: O. Vinyals et al., "Show and Tell: A Neural Image Caption Generator", CVPR 2015 (seed 001).

Inception V3 without its classifier, whose 2,048 features an LSTM of 512 reads, and then a caption; those of COCO have 12 words,
with the start.
"""

from __future__ import annotations

from sim.zoo.layers import multiplied, variable

FEATURES, WORDS, UNITS, CAPTION = 2048, 12_000, 512, 12


def captioning(inception: dict) -> dict:
    """The whole model, with the variables in the file of Inception V3."""
    lstm, logits = variable("lstm/kernel", 2 * UNITS, 4 * UNITS), variable("logits/kernel", UNITS, WORDS)
    reader = [
        variable("image_embedding/kernel", FEATURES, UNITS),
        {**variable("seq_embedding", WORDS, UNITS), "rows": {"per_sample": CAPTION}},
        *(lstm, variable("lstm/bias", 4 * UNITS)),
        *(logits, variable("logits/bias", WORDS)),
    ]
    return {
        "sample_shape": inception["sample_shape"],
        "classes": WORDS,
        "batch": 32,
        "flops_per_sample": inception["flops_per_sample"] + 2.0 * CAPTION * multiplied([lstm, logits]),
        "variables": inception["variables"][:-2] + reader,
    }
