"""Saved models, with their optimizers made distributed."""
from tutti._keras.optimizer import Distributed, variables_of


def _take_over(optimizer, other, variables):
    """Gives `optimizer` the state of `other`: iterations, rates and slots, which stand in the same
    order, since they are of the same class."""
    if hasattr(optimizer, "_create_all_weights"):  # Keras 2's legacy ones
        if other.get_weights():
            optimizer._create_all_weights(variables)
            optimizer.set_weights(other.get_weights())
        return
    optimizer.build(variables)
    for mine, its in zip(variables_of(optimizer), variables_of(other)):
        mine.assign(its)


def load(keras, filepath, wrap, custom_optimizers, custom_objects):
    """The model at `filepath`; its optimizer is what `wrap` makes of the saved one, with its
    state."""
    objects = {cls.__name__: cls for cls in custom_optimizers or ()}
    objects.update(custom_objects or {})
    model = keras.models.load_model(filepath, custom_objects=objects)
    saved = getattr(model, "optimizer", None)
    if saved is not None and not isinstance(saved, Distributed):
        optimizer = wrap(saved)
        _take_over(optimizer, saved, model.trainable_variables)
        model.optimizer = optimizer
        model.jit_compile = False  # of Keras 3; see dialect.py
    return model
