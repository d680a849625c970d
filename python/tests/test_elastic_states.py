"""TorchState keeps models, optimizers and samplers; ElasticSampler loses no sample and repeats none."""
RANKS = {"program": "elastic_runs.elastic_states", "framework": "torch", "size": 2}


def test_every_sample_is_seen_once_also_after_a_change(ranks):
    dealt = ranks.call("deal", 20, 2, 3)
    seen = [index for before, _, _ in dealt for index in before]
    left = [index for _, after, _ in dealt for index in after]
    assert len(seen) == len(set(seen)) == 12 and sorted(seen + left) == list(range(20))
    assert [length for _, _, length in dealt] == [4, 4]


def test_ranks_get_the_same_number_of_samples_where_it_does_not_divide_evenly(ranks):
    dealt = ranks.call("deal", 7, 0, 1)
    assert [len(after) for _, after, _ in dealt] == [4, 4]
    assert {index for _, after, _ in dealt for index in after} == set(range(7))


def test_nothing_is_left_of_an_epoch_that_was_seen(ranks):
    assert [after for _, after, _ in ranks.call("deal", 6, 3, 1)] == [[], []]


def test_a_state_goes_back_to_its_commit(ranks):
    ranks.call("restored")


def test_rank_0s_state_comes_to_all_ranks(ranks):
    first, second = ranks.call("synchronised")
    assert first == second and first[3] == 5


def test_a_model_that_is_replaced_is_kept_from_then_on(ranks):
    ranks.call("replaced")


def test_a_handler_of_ones_own_is_asked(ranks):
    ranks.call("own_handler")
