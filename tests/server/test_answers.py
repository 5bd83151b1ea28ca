"""What the API answers: whole and streamed, by hand-written requests."""

import json

import pytest

CHAT = {"messages": [{"role": "user", "content": "the then there the then"}], "max_tokens": 24, "temperature": 0}
PROMPT = {"prompt": "the then there the then", "max_tokens": 24, "temperature": 0, "ignore_eos": True}


def test_a_chat_is_answered_in_openais_form(ask):
    answer = ask("/v1/chat/completions", CHAT).json
    assert answer["object"] == "chat.completion"
    assert answer["id"].startswith("chatcmpl-")
    (choice,) = answer["choices"]
    assert choice["message"]["role"] == "assistant"
    assert choice["finish_reason"] in {"stop", "length"}
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert "outrider" not in answer


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_stream_holds_the_same_text_as_the_whole_answer(ask, path):
    wishes = CHAT if "chat" in path else PROMPT
    whole = ask(path, wishes).json
    events = ask(path, wishes | {"stream": True, "stream_options": {"include_usage": True}}).events()
    *chunks, last = events
    if "chat" in path:
        assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        assert said == whole["choices"][0]["message"]["content"]
    else:
        assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole["choices"][0]["text"]
    assert chunks[-1]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert {chunk["id"] for chunk in events} == {chunks[0]["id"]}


def test_usage_is_told_only_where_it_was_asked_for(ask):
    events = ask("/v1/completions", PROMPT | {"stream": True}).events()
    assert all("usage" not in event for event in events)
    assert all(len(event["choices"]) == 1 for event in events)


def test_drafts_are_counted_in_usage_and_on_request_by_position(ask):
    answer = ask("/v1/completions", PROMPT | {"max_tokens": 120, "outrider": {"acceptance": True}}).json
    told, details = answer["outrider"]["acceptance"], answer["usage"]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] == told["accepted"]
    assert details["rejected_prediction_tokens"] == told["drafted"] - told["accepted"]
    assert told["rounds"] + told["accepted"] == answer["usage"]["completion_tokens"]
    assert told["length"] == pytest.approx(1 + sum(told["position_rates"]))


def test_drafting_is_turned_off_for_a_request_and_the_text_stays(ask):
    plain = ask("/v1/completions", PROMPT | {"outrider": {"draft_length": 0, "acceptance": True}}).json
    assert plain["outrider"]["acceptance"]["drafted"] == 0
    assert plain["choices"] == ask("/v1/completions", PROMPT).json["choices"]


def test_rounds_are_told_with_their_trees(ask):
    wishes = PROMPT | {"max_tokens": 100, "stream": True, "outrider": {"rounds": True}}
    told = [event["outrider"] for event in ask("/v1/completions", wishes).events() if "outrider" in event]
    assert sum(len(one["tokens"]) for one in told) == 100
    for one in told:
        nodes, path = one["round"]["nodes"], one["round"]["path"]
        assert [nodes[node - 1]["parent"] for node in path] == [0, *path][: len(path)]
        kinds = [token["kind"] for token in one["tokens"]]
        assert kinds[:-1] == ["draft"] * (len(kinds) - 1)
        assert kinds[-1] == ("bonus" if nodes else "plain")
        assert [token["depth"] for token in one["tokens"][:-1]] == list(range(1, len(kinds)))
    assert any(one["round"]["nodes"] for one in told)


def test_n_choices_differ_where_they_are_drawn_and_a_seed_repeats_them(ask):
    wishes = {"prompt": "a", "max_tokens": 12, "n": 3, "seed": 7}
    first, again = (ask("/v1/completions", wishes).json for _ in range(2))
    texts = [choice["text"] for choice in first["choices"]]
    assert [choice["index"] for choice in first["choices"]] == [0, 1, 2]
    assert len(set(texts)) == 3
    assert texts == [choice["text"] for choice in again["choices"]]


def test_several_prompts_are_answered_in_order(ask, greedy):
    prompts = ["the", "in the", "there"]
    wishes = {"prompt": prompts, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    choices = ask("/v1/completions", wishes).json["choices"]
    assert [choice["text"] for choice in choices] == [greedy(prompt, 8) for prompt in prompts]


def test_token_ids_are_prompts_too(ask):
    tokens = ask("/tokenize", {"prompt": "the then"}).json["tokens"]
    wishes = {"max_tokens": 8, "temperature": 0}
    by_text = ask("/v1/completions", wishes | {"prompt": "the then"}).json
    by_ids = ask("/v1/completions", wishes | {"prompt": tokens}).json
    assert by_ids["choices"] == by_text["choices"]


def test_a_stop_string_ends_the_text_before_it(ask, greedy):
    text = greedy("there", 40)
    stop = text[20:23]
    answer = ask("/v1/completions", {"prompt": "there", "max_tokens": 40, "temperature": 0, "stop": [stop]}).json
    assert answer["choices"][0]["text"] == text[: text.index(stop)]
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_logprobs_of_both_forms_are_those_of_the_same_law(ask):
    wishes = {"prompt": "the", "max_tokens": 6, "temperature": 0, "logprobs": 2}
    plain = ask("/v1/completions", wishes).json["choices"][0]["logprobs"]
    assert len(plain["tokens"]) == len(plain["token_logprobs"]) == len(plain["text_offset"]) == 6
    for chosen, top in zip(plain["token_logprobs"], plain["top_logprobs"], strict=True):
        assert chosen == pytest.approx(max(top.values()))
    chat = ask("/v1/chat/completions", CHAT | {"max_tokens": 6, "logprobs": True, "top_logprobs": 2}).json
    for entry in chat["choices"][0]["logprobs"]["content"]:
        assert entry["logprob"] == pytest.approx(entry["top_logprobs"][0]["logprob"])
        assert bytes(entry["bytes"]).decode() == entry["token"]


def test_a_bias_forces_a_token(ask):
    (token,) = ask("/tokenize", {"prompt": "q"}).json["tokens"]
    wishes = {"prompt": "a", "max_tokens": 3, "temperature": 0, "logit_bias": {str(token): 100}}
    assert ask("/v1/completions", wishes).json["choices"][0]["text"] == "qqq"


def test_text_becomes_tokens_and_tokens_text(ask):
    told = ask("/tokenize", {"prompt": "the then", "return_token_strs": True}).json
    assert told["count"] == len(told["tokens"]) == len(told["token_strs"])
    assert ask("/detokenize", {"tokens": told["tokens"]}).json["prompt"] == "the then"
    chat = ask("/tokenize", {"messages": [{"role": "user", "content": "hi"}]}).json
    assert ask("/detokenize", {"tokens": chat["tokens"]}).json["prompt"] == "<s><turn>user\nhi</s><turn>assistant\n"


def test_tools_and_parts_reach_the_template(ask):
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    told = ask("/tokenize", {"messages": [{"role": "user", "content": parts}]}).json
    assert "a\nb" in ask("/detokenize", {"tokens": told["tokens"]}).json["prompt"]
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    assert ask("/v1/chat/completions", CHAT | {"tools": [tool]}).status == 200


def test_the_small_pages_answer(server):
    assert server.get("/health").json == {"status": "ok"}
    assert server.get("/version").json["engine"] == "outrider"
    (model,) = server.get("/v1/models").json["data"]
    assert (model["id"], model["max_model_len"]) == ("tiny", 512)
    assert json.loads(server.get("/openapi.json").body)["paths"].keys() >= {"/v1/chat/completions", "/tokenize"}
