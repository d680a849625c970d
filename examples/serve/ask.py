"""Asks a server of the Open Inference Protocol what images show, by Triton's client (pip install 'tritonclient[http]').

    ask.py URL MODEL IMAGE…
"""
import pathlib
import sys

import numpy
import tritonclient.http


def main(url, model, *files):
    images = numpy.array([pathlib.Path(file).read_bytes() for file in files], dtype=object)
    tensor = tritonclient.http.InferInput("image", list(images.shape), "BYTES")
    tensor.set_data_from_numpy(images)
    with tritonclient.http.InferenceServerClient(url.removeprefix("http://")) as client:
        answer = client.infer(model, [tensor])
    for file, classes, probabilities in zip(files, answer.as_numpy("classes"), answer.as_numpy("probabilities")):
        print(f"{pathlib.Path(file).name:16}", ", ".join(f"{name.decode()} {share:.1%}" for name, share in zip(classes[:3], probabilities)))


if __name__ == "__main__":
    main(*sys.argv[1:])
