"""Common to tutti.keras and tutti.tensorflow.keras: for Keras 2 (tf_keras) and Keras 3."""
import tutti.tensorflow  # first, since it imports from here
