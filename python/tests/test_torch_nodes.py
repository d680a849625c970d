"""tutti.torch between two nodes: torch_nodes.py is what their ranks run."""
RANKS = {"program": "torch_nodes", "framework": "torch", "size": 2}


def test_what_int8_loses_comes_later(ranks):
    ranks.call("int8_between_nodes")
