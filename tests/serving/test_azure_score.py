"""Story: what asks endpoints of Azure ML asks tutti's server: /score, with an image or with JSON, and /swagger.json, which says how."""
import base64

import pytest

from serving_story import CAT, IMAGES, JPEG, Server, assert_agree, by_torch, predictions_of, trained  # noqa: F401


@pytest.fixture(scope="module")
def server(trained, tmp_path_factory):  # noqa: F811
    with Server(tmp_path_factory.mktemp("server"), [f"cifar={trained}"]) as running:
        yield running


@pytest.fixture(scope="module")
def expected(trained):  # noqa: F811
    return by_torch("classify", trained, *IMAGES)


def encoded(file):
    return base64.b64encode(file.read_bytes()).decode()


def test_an_image_gets_its_classes(server, expected):
    for query, count in (("", 5), ("?top=3", 3)):
        answer = server.ask(f"/score{query}", CAT.read_bytes(), {"Content-Type": "image/jpeg"})
        assert answer.status == 200, answer.body
        assert_agree(predictions_of(answer.json()), expected[str(CAT)], count, JPEG)


@pytest.mark.parametrize("rows", [1, 3])
def test_images_in_json_get_an_answer_each(server, expected, rows):
    images = IMAGES[:rows]
    for body in ({"input_data": {"columns": ["image"], "data": [[encoded(file)] for file in images]}}, {"data": [encoded(file) for file in images]},
                 {"input_data": {"columns": ["image"], "index": list(range(rows)), "data": [[encoded(file)] for file in images]}}):
        answer = server.ask("/score", body)
        assert answer.status == 200, answer.body
        assert len(answer.json()) == rows
        for file, one in zip(images, answer.json()):
            assert_agree(predictions_of(one), expected[str(file)], 5, JPEG)


def test_the_description_names_the_way_to_score(server):
    answer = server.ask("/swagger.json")
    assert answer.status == 200
    said = answer.json()
    assert said.get("swagger") or said.get("openapi")
    assert "post" in said["paths"]["/score"] and said["info"]["title"] and said["info"]["version"]


def test_the_root_answers_who_looks_whether_it_lives(server):
    assert server.ask("/").status == 200


@pytest.mark.parametrize("body, word", [({"input_data": {"columns": ["image"], "data": []}}, "image"), ({"images": []}, "data"), ([], "data"),
                                        ({"data": ["not base64!"]}, "base64"), ({"data": [7]}, "base64")])
def test_what_has_no_image_is_refused_in_a_line(server, body, word):
    assert word in server.ask("/score", body).refusal(400)
