"""Published training rates of one GPU, samples a second, and the operations of a sample.

Sources:

- GOOGLE: TensorFlow's performance benchmarks page, 2017: synthetic data, one GPU. One of the two of a K80's board.
- CSCS: E. Bugliarello, "Distributed TensorFlow: A performance evaluation", CSCS, September 2017: P100 for PCIe in Piz Daint.
- HOROVOD: Horovod's README, September 2017: "Pascal" GPUs, two clusters; taken to be P100 for PCIe.
- POLLUX: A. Qiao et al., "Pollux", OSDI 2021, its artifact's profiles of a T4 (g4dn.12xlarge), the largest batch of each model.
- LAMBDA: github.com/lambdal/deeplearning-benchmark, PyTorch, 2022 and 2023, NVIDIA's implementations in its containers, where
  "fp32" is TF32 on GPUs that have it; BERT on SQuAD, sequences of 384.
- NVIDIA: github.com/NVIDIA/DeepLearningExamples, READMEs of ResNet-50 v1.5 (PyTorch 21.03, TensorFlow 20.06) and BERT (19.07).
- LAMBDA-2: the second table of LAMBDA (commit aa5addb, December 2025; pytorch-train-throughput-v2-fp16.csv and -fp32.csv, one GPU), and
  A100 80 GB for PCIe of its first.
"""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """One rate."""

    source: str
    gpu: str
    precision: str
    model: str
    samples_per_s: float


def _rows(source: str, gpu: str, precision: str, **rates: float) -> list[Published]:
    return [Published(source, gpu, precision, model, rate) for model, rate in rates.items()]


RATES = [
    *_rows("GOOGLE", "P100-SXM2", "fp32", inception_v3=142, resnet50=219, resnet152=91.8, alexnet=2987, vgg16=154),
    *_rows("GOOGLE", "K80", "fp32", inception_v3=30.5, resnet50=51.9, resnet152=20.0, alexnet=656, vgg16=35.4),
    *_rows("GOOGLE", "K80", "fp32", inception_v3=30.8, resnet50=51.5, resnet152=19.7, alexnet=684, vgg16=36.3),
    *_rows("CSCS", "K80", "fp32", inception_v3=30.55),
    *_rows("CSCS", "P100", "fp32", inception_v3=138.23),
    *_rows("HOROVOD", "P100", "fp32", inception_v3=134.4, resnet101=119.4, vgg16=130.9),
    *_rows("HOROVOD", "P100", "fp32", inception_v3=148.8, resnet101=136.0, vgg16=149.6),
    *_rows("POLLUX", "T4", "fp32", bert_base=13.02, resnet50=216.6, resnet18_cifar=1458.5),
    *_rows("LAMBDA", "V100", "fp32", bert_base=42, bert_large=12, resnet50=369),
    *_rows("LAMBDA", "V100", "fp16", bert_base=189, bert_large=57, resnet50=833),
    *_rows("NVIDIA", "V100", "fp32", bert_large=8.96, resnet50=367),
    *_rows("NVIDIA", "V100", "fp16", bert_large=45.2, resnet50=1200),
    *_rows("NVIDIA", "V100", "fp32", resnet50=412),
    *_rows("NVIDIA", "V100", "fp16", resnet50=1270),
    *_rows("LAMBDA", "A10", "tf32", bert_base=70, bert_large=19, resnet50=349),
    *_rows("LAMBDA", "A10", "fp16", bert_base=135, bert_large=42, resnet50=638),
    *_rows("LAMBDA", "A100", "tf32", bert_base=179, bert_large=53, resnet50=882),
    *_rows("LAMBDA", "A100", "fp16", bert_base=368, bert_large=117, resnet50=1396),
    *_rows("NVIDIA", "A100", "tf32", resnet50=909),
    *_rows("NVIDIA", "A100", "fp16", resnet50=2375),
    *_rows("LAMBDA", "A100-80GB", "tf32", bert_base=239, bert_large=75, resnet50=1066),
    *_rows("LAMBDA", "A100-80GB", "fp16", bert_base=443, bert_large=152, resnet50=1582),
    *_rows("NVIDIA", "A100-80GB", "tf32", resnet50=938),
    *_rows("NVIDIA", "A100-80GB", "fp16", resnet50=2470),
    *_rows("LAMBDA", "H100", "tf32", bert_base=433, bert_large=147, resnet50=1893),
    *_rows("LAMBDA", "H100", "fp16", bert_base=867, bert_large=307, resnet50=2776),
]

# Of GPUs that were published after the law of `RATES` was fixed: they have shares of their own, and a wider spread.
LATER = [
    *_rows("LAMBDA-2", "A100-80GB-PCIe", "tf32", bert_base=224, bert_large=70, resnet50=1014),
    *_rows("LAMBDA-2", "A100-80GB-PCIe", "fp16", bert_base=415, bert_large=140, resnet50=1527),
    *_rows("LAMBDA-2", "H100-PCIe", "tf32", bert_base=302, bert_large=100, resnet50=1248),
    *_rows("LAMBDA-2", "H100-PCIe", "fp16", bert_base=580, bert_large=204, resnet50=1976),
    *_rows("LAMBDA-2", "H200", "tf32", bert_base=514, bert_large=181, resnet50=2259),
    *_rows("LAMBDA-2", "H200", "fp16", bert_base=932, bert_large=350, resnet50=3079),
    *_rows("LAMBDA-2", "B200", "tf32", bert_base=855, bert_large=281, resnet50=2967),
    *_rows("LAMBDA-2", "B200", "fp16", bert_base=1405, bert_large=523, resnet50=3076),
]
