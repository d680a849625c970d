"""What tutti.keras and tutti.tensorflow.keras have in common: for Keras 2 (tf_keras) and Keras 3."""
