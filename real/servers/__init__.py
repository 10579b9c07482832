"""TensorFlow's own parameter servers, run for real and recorded in our traces."""
