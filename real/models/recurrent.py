"""LSTMs, unrolled: variables come as kernel and bias of the LSTM, then of a dense layer; and bigrams, which depend on one word alone."""

from __future__ import annotations

from real.models.operations import Operations

FORGET_BIAS = 1.0  # added to the forget gate, as TensorFlow's BasicLSTMCell does


def lstm(nn: Operations, kernel, bias, inputs):
    """The last output of an LSTM (Hochreiter and Schmidhuber, 1997; forget gate: Gers et al., 2000), shape (samples, units).

    Args:
        kernel: shape (width + units, 4 units): input gate, new input, forget gate, output gate.
        bias: shape (4 units,).
        inputs: shape (samples, steps, width); as many steps as the shape says.
    """

    def cell(before, x):
        output, state = before
        gates = nn.add_bias(nn.concatenate([x, output]) @ kernel, bias)
        enter, new, keep, leave = nn.split(gates, 4)
        state = state * nn.sigmoid(keep + FORGET_BIAS) + nn.sigmoid(enter) * nn.tanh(new)
        return nn.tanh(state) * nn.sigmoid(leave), state

    nothing = nn.zeros(inputs, bias.shape[0] // 4)
    return nn.last_state(cell, (nothing, nothing), inputs)[0]


def row_by_row(nn: Operations, variables: list, x):
    """Reads pictures (samples, rows, columns), a row a step (A. Damien, "TensorFlow Examples", recurrent network)."""
    kernel, bias, weights, biases = variables
    return nn.add_bias(lstm(nn, kernel, bias, x) @ weights, biases)


def next_word(nn: Operations, variables: list, x):
    """Reads numbers of words (samples, words) and predicts the next; the first variable is their embedding."""
    embedding, *others = variables
    return row_by_row(nn, others, nn.rows(embedding, x))


def bigram(nn: Operations, variables: list, x):
    """Reads numbers of words (samples, words) and predicts the next by the last; the only variable has a row of logits for each."""
    (table,) = variables
    return nn.rows(table, x[:, -1])
