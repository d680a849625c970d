"""Asks a server of models by clients that others wrote, and prints their answers as JSON.

    clients_peer.py triton|kserve URL MODEL IMAGE…      {way: {"classes": [[name…] for each image], "probabilities": [[number…]…]}}, of one request
    clients_peer.py facts URL MODEL VERSION             what each client says of server and model
    clients_peer.py pixels URL MODEL FILE HEIGHT WIDTH  as the first, of a tensor that the client has prepared
    clients_peer.py tensors URL MODEL IMAGE…            {output: [datatype, shape, values]}, of all that it gives by itself
    clients_peer.py load URL MODEL                      has it loaded anew
    clients_peer.py refused URL MODEL                   what is said of a model and a version that there are not
"""
import asyncio
import base64
import json
import pathlib
import sys

import numpy
import tritonclient.http
from tritonclient.utils import InferenceServerException

OUTPUTS = ["classes", "probabilities"]
LIMIT = 120  # seconds; a stalled machine is no fault


def connected(url):
    return tritonclient.http.InferenceServerClient(url.removeprefix("http://"), connection_timeout=LIMIT, network_timeout=LIMIT)


def text_of(array):
    return numpy.vectorize(lambda one: one.decode() if isinstance(one, bytes) else str(one), otypes=[object])(array).tolist()


def answer_of(as_numpy):
    return {"classes": text_of(as_numpy("classes")), "probabilities": as_numpy("probabilities").tolist()}


def bytes_of(files):
    return [pathlib.Path(file).read_bytes() for file in files]


def tensor_of(values):
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


def asked_of_triton(name, array, datatype, binary):
    tensor = tritonclient.http.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return [tensor]


def wanted_of_triton(binary):
    return [tritonclient.http.InferRequestedOutput(name, binary_data=binary) for name in OUTPUTS]


def triton(url, model, *files):
    images = bytes_of(files)
    raw = asked_of_triton("image", tensor_of(images), "BYTES", True)
    text = asked_of_triton("image", tensor_of([base64.b64encode(image) for image in images]), "BYTES", False)
    ways = {"json": (text, wanted_of_triton(False)), "binary": (raw, wanted_of_triton(True)), "binary to json": (raw, wanted_of_triton(False)),
            "json to binary": (text, wanted_of_triton(True)), "by itself": (raw, None)}
    said = {}
    with connected(url) as client:
        for way, (inputs, outputs) in ways.items():
            result = client.infer(model, inputs, outputs=outputs, request_id=f"of {way}")
            assert result.get_response()["id"] == f"of {way}", result.get_response()
            said[way] = answer_of(result.as_numpy)
        result = client.infer(model, raw, parameters={"top": 2})
        said["top 2"] = answer_of(result.as_numpy)
    return said


async def ask_by_kserve(url, model, images):
    from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig
    from kserve.protocol.infer_type import RequestedOutput
    client, said = InferenceRESTClient(RESTConfig(protocol="v2", timeout=LIMIT)), {}
    text = [base64.b64encode(image).decode() for image in images]
    for way, values, binary_in, binary_out in (("json", text, False, False), ("binary", images, True, True), ("binary to json", images, True, False)):
        tensor = InferInput("image", [len(values)], "BYTES")
        tensor.set_data_from_numpy(tensor_of(values), binary_data=binary_in)
        wanted = [RequestedOutput(name, {"binary_data": binary_out}) for name in OUTPUTS]
        result = await client.infer(url, InferRequest(model, [tensor], request_id=f"of {way}", request_outputs=wanted), model_name=model)
        assert result.id == f"of {way}" and result.model_name == model, result
        outputs = {output.name: output for output in result.outputs}
        said[way] = answer_of(lambda name, outputs=outputs: outputs[name].as_numpy())
    await client.close()
    return said


def kserve(url, model, *files):
    return asyncio.run(ask_by_kserve(url, model, bytes_of(files)))


async def facts_by_kserve(url, model):
    from kserve import InferenceRESTClient, RESTConfig
    client = InferenceRESTClient(RESTConfig(protocol="v2", timeout=LIMIT))
    said = {"live": await client.is_server_live(url), "ready": await client.is_server_ready(url), "model ready": await client.is_model_ready(url, model),
            "none ready": await client.is_model_ready(url, "none")}
    await client.close()
    return said


def facts(url, model, version):
    with connected(url) as client:
        said = {"live": client.is_server_live(), "ready": client.is_server_ready(), "model ready": client.is_model_ready(model),
                "version ready": client.is_model_ready(model, version), "none ready": client.is_model_ready("none"),
                "server": client.get_server_metadata(), "model": client.get_model_metadata(model), "version": client.get_model_metadata(model, version),
                "index": client.get_model_repository_index()}
    return {"triton": said, "kserve": asyncio.run(facts_by_kserve(url, model))}


def pixels(url, model, file, height, width):
    array = numpy.fromfile(file, numpy.float32).reshape(1, 3, int(height), int(width))
    with connected(url) as client:
        return {way: answer_of(client.infer(model, asked_of_triton("pixels", array, "FP32", way == "binary"), outputs=wanted_of_triton(False)).as_numpy)
                for way in ("json", "binary")}


def tensors(url, model, *files):
    said = {}
    with connected(url) as client:
        result = client.infer(model, asked_of_triton("image", tensor_of(bytes_of(files)), "BYTES", True))
    for output in result.get_response()["outputs"]:
        array = result.as_numpy(output["name"])
        said[output["name"]] = [output["datatype"], output["shape"], text_of(array) if output["datatype"] == "BYTES" else array.tolist()]
    return said


def load(url, model):
    with connected(url) as client:
        client.load_model(model)
        return client.is_model_ready(model)


def refused(url, model):
    said = {}
    with connected(url) as client:
        for what, name, version in (("model", "none", ""), ("version", model, "999")):
            try:
                client.get_model_metadata(name, version)
            except InferenceServerException as error:
                said[what] = [error.status(), error.message()]
    return said


COMMANDS = {command.__name__: command for command in (triton, kserve, facts, pixels, tensors, load, refused)}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
