"""Callbacks for libraries that have the training loop: Keras, Lightning, and Hugging Face's Trainer.

Each library is imported by the user, and its base class is taken from there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sim.base.errors import WrongSetting
from trainsim.recording.loops import Guard

if TYPE_CHECKING:
    from trainsim.recording.recorder import Recorder


def _base(names: tuple[str, ...], attribute: str) -> Any:
    """The base class of a library's callbacks, of the first module that is there.

    Raises:
        WrongSetting: nobody has imported it.
    """
    found = next((getattr(sys.modules[name], attribute, None) for name in names if name in sys.modules), None)
    if found is None:
        raise WrongSetting("Recorder", None, f"{' or '.join(names)}, imported before its callback is made")
    return found


def keras(recorder: Recorder) -> Any:
    """A keras.callbacks.Callback. Keras fetches a batch within its step: that is part of computing."""
    base = _base(("keras.callbacks", "keras.src.callbacks.callback"), "Callback")

    class Recording(base):  # type: ignore[misc, valid-type]
        """It tells the recorder of each batch."""

        def __init__(self):
            super().__init__()
            self._told = False

        def on_epoch_begin(self, epoch, logs=None):
            """The loop begins, or goes on after a validation."""
            recorder.begin(self)

        def on_train_batch_begin(self, batch, logs=None):
            """A step begins."""
            recorder.arrived(self)

        def on_train_batch_end(self, batch, logs=None):
            """A step has ended."""
            if not self._told:
                self._told = True
                with Guard(recorder):
                    variables = [(one.path, tuple(one.shape)) for one in self.model.trainable_variables]
                    recorder.learn_version("keras", str(sys.modules["keras"].__version__))
                    recorder.describe(self.model.name, variables)
            recorder.done(self)

        def on_epoch_end(self, epoch, logs=None):
            """The loop is left."""
            recorder.end(self)

    return Recording()


def lightning(recorder: Recorder) -> Any:
    """A Callback of lightning.pytorch, or of pytorch_lightning."""
    base = _base(("lightning.pytorch", "pytorch_lightning"), "Callback")

    class Recording(base):  # type: ignore[misc, valid-type]
        """It tells the recorder of each batch."""

        def on_train_epoch_start(self, trainer, pl_module):
            """The loop begins, or goes on after a validation."""
            recorder.begin(self)

        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            """A batch is there."""
            recorder.arrived(self, batch)

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            """The loop is done with it."""
            recorder.done(self)

        def on_validation_end(self, trainer, pl_module):
            """The loop goes on after a validation within an epoch."""
            recorder.begin(self)

        def on_train_epoch_end(self, trainer, pl_module):
            """The loop is left."""
            recorder.end(self)

    return Recording()


def transformers(recorder: Recorder) -> Any:
    """A TrainerCallback of transformers: a step is that of the Trainer, of all minibatches that it accumulates."""
    base = _base(("transformers",), "TrainerCallback")

    class Recording(base):  # type: ignore[misc, valid-type]
        """It tells the recorder of each step."""

        def on_epoch_begin(self, args, state, control, **kwargs):
            """The loop begins."""
            recorder.begin(self)

        def on_step_begin(self, args, state, control, **kwargs):
            """The batches of a step are there."""
            each = args.per_device_train_batch_size * max(1, args.n_gpu)
            recorder.arrived(self, samples=each * args.gradient_accumulation_steps)

        def on_step_end(self, args, state, control, **kwargs):
            """The parameters are updated."""
            recorder.done(self)

        def on_evaluate(self, args, state, control, **kwargs):
            """The loop goes on after an evaluation."""
            recorder.begin(self)

        def on_save(self, args, state, control, **kwargs):
            """The loop goes on after a checkpoint."""
            recorder.begin(self)

        def on_epoch_end(self, args, state, control, **kwargs):
            """The loop is left."""
            recorder.end(self)

    return Recording()
