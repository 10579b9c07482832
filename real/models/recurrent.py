"""LSTMs, unrolled: variables come as kernel and bias of the LSTM, then of a dense layer."""

from __future__ import annotations

FORGET_BIAS = 1.0  # added to the forget gate, as TensorFlow's BasicLSTMCell does


def lstm(kernel, bias, inputs):
    """The last output of an LSTM (Hochreiter and Schmidhuber, 1997; forget gate: Gers et al., 2000), shape (samples, units).

    Args:
        kernel: shape (width + units, 4 units): input gate, new input, forget gate, output gate.
        bias: shape (4 units,).
        inputs: shape (samples, steps, width); as many steps as the graph knows.
    """
    import tensorflow as tf

    output = state = tf.zeros((tf.shape(inputs)[0], bias.shape[0] // 4))
    for x in tf.unstack(inputs, axis=1):
        gates = tf.nn.bias_add(tf.concat([x, output], 1) @ kernel, bias)
        enter, new, keep, leave = tf.split(gates, 4, axis=1)
        state = state * tf.sigmoid(keep + FORGET_BIAS) + tf.sigmoid(enter) * tf.tanh(new)
        output = tf.tanh(state) * tf.sigmoid(leave)
    return output


def row_by_row(variables: list, x):
    """Reads pictures (samples, rows, columns), a row a step (A. Damien, "TensorFlow Examples", recurrent network)."""
    import tensorflow as tf

    kernel, bias, weights, biases = variables
    return tf.nn.bias_add(lstm(kernel, bias, x) @ weights, biases)


def next_word(variables: list, x):
    """Reads numbers of words (samples, words) and says the next; the first variable is their embedding."""
    import tensorflow as tf

    embedding, *others = variables
    return row_by_row(others, tf.gather(embedding, tf.cast(x, tf.int32)))
