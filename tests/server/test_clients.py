"""The official OpenAI client against a real server, unchanged; and many at once."""

import asyncio

import openai
import pytest

WISHES = {"model": "tiny", "max_tokens": 20, "temperature": 0}
MESSAGES = [{"role": "user", "content": "the then there"}]


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as made:
        yield made


def test_chats_whole_and_streamed(client):
    whole = client.chat.completions.create(messages=MESSAGES, **WISHES)
    assert whole.usage.completion_tokens_details.accepted_prediction_tokens is not None
    stream = client.chat.completions.create(
        messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **WISHES
    )
    chunks = list(stream)
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == whole.choices[0].message.content
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens


def test_the_clients_own_stream_helper(client):
    said = client.chat.completions.create(messages=MESSAGES, **WISHES).choices[0].message.content
    # A text that ends by length is an error to this helper, so ours ends by a stop string.
    with client.chat.completions.stream(messages=MESSAGES, stop=[said[8:10]], **WISHES) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.content == said[: said.index(said[8:10])]


def test_completions_with_logprobs_and_what_is_added(client):
    answer = client.completions.create(
        prompt="the then", logprobs=1, extra_body={"outrider": {"acceptance": True}}, **WISHES
    )
    assert len(answer.choices[0].logprobs.tokens) == answer.usage.completion_tokens
    assert answer.model_extra["outrider"]["acceptance"]["rounds"] > 0


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_errors_become_the_clients_own(client):
    with pytest.raises(openai.BadRequestError, match="less than or equal to 2"):
        client.completions.create(model="tiny", prompt="a", temperature=5)
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="other", prompt="a")


def test_greedy_texts_in_a_crowd_are_those_of_a_single_user(server, greedy):
    """Mixed lengths, three slots, drawn and greedy ones together, every third one leaves in the middle."""
    prompts = [f"{'the then ' * (i % 7)}in {i}" for i in range(24)]
    lengths = [5 + 7 * (i % 6) for i in range(24)]
    alone = [greedy(prompt, length) for prompt, length in zip(prompts, lengths, strict=True)]

    async def one(client, i):
        drawn = {"temperature": 0} if i % 4 else {"temperature": 1.0, "seed": i}
        stream = await client.completions.create(
            model="tiny",
            prompt=prompts[i],
            max_tokens=lengths[i],
            stream=True,
            extra_body={"ignore_eos": True, "outrider": {"draft_length": i % 3 if i % 5 == 0 else None}},
            **drawn,
        )
        said = ""
        async for chunk in stream:
            said += chunk.choices[0].text
            if i % 3 == 2 and said:
                await stream.close()
                return None
        return said if i % 4 else None

    async def crowd():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
            return await asyncio.gather(*(one(client, i) for i in range(24)))

    said = asyncio.run(crowd())
    finished = [(text, wanted) for text, wanted in zip(said, alone, strict=True) if text is not None]
    assert len(finished) == 12
    assert [text for text, _ in finished] == [wanted for _, wanted in finished]
    server.wait_idle()
    assert server.metric("vllm:kv_cache_usage_perc") == 0


def test_what_is_counted_is_what_was_written(server):
    before = {name: server.metric(name) for name in COUNTED}
    positions = server.metric("vllm:spec_decode_num_accepted_tokens_per_pos_total")
    wishes = {"prompt": "the then the then", "max_tokens": 80, "temperature": 0, "ignore_eos": True}
    answer = server.post("/v1/completions", wishes | {"outrider": {"acceptance": True}}).json
    told, usage = answer["outrider"]["acceptance"], answer["usage"]
    grown = {name: server.metric(name) - before[name] for name in COUNTED}
    assert grown == {
        "vllm:spec_decode_num_draft_tokens_total": told["drafted"],
        "vllm:spec_decode_num_accepted_tokens_total": told["accepted"],
        "outrider:rounds_total": told["rounds"],
        "vllm:generation_tokens_total": usage["completion_tokens"],
        "vllm:prompt_tokens_total": usage["prompt_tokens"],
        "vllm:time_to_first_token_seconds_count": 1,
        "vllm:e2e_request_latency_seconds_count": 1,
    }
    grown_positions = server.metric("vllm:spec_decode_num_accepted_tokens_per_pos_total") - positions
    assert grown_positions == told["accepted"]  # tau = 1 + the sum over positions
    drafts = server.metric("vllm:spec_decode_num_drafts_total")
    assert server.metric("vllm:spec_decode_num_accepted_tokens_per_pos_total", position="0") <= drafts


COUNTED = (
    "vllm:spec_decode_num_draft_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_total",
    "outrider:rounds_total",
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:time_to_first_token_seconds_count",
    "vllm:e2e_request_latency_seconds_count",
)
