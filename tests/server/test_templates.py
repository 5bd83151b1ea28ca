"""Chat templates are code from strangers: what takes too long or too much is ended, and the next chat is served."""

import asyncio

import pytest

from outrider.server.faults import ApiError
from outrider.server.templates import Templates
from outrider.text.tokenizer import Tokenizer

BOMBS = {
    "time": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "memory": "{% set n = namespace(x='x') %}{% for i in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "size": "{{ 'x' * 100000000 }}",
}
PLAIN = "{% for m in messages %}{% if m.content == 'BOMB' %}%s{% endif %}{{ m.content }}{% endfor %}"


def tokenizer(template: str | None) -> Tokenizer:
    return Tokenizer(None, chat_template=template)


@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_ended_and_the_next_chat_is_rendered(kind):
    async def run() -> str:
        templates = Templates(tokenizer(PLAIN.replace("%s", BOMBS[kind])), seconds=0.5)
        assert await templates.render([{"role": "user", "content": "before"}]) == "before"
        with pytest.raises(ApiError, match=r"memory it may take|MemoryError") as caught:
            await templates.render([{"role": "user", "content": "BOMB"}])
        assert caught.value.status == 400
        text = await templates.render([{"role": "user", "content": "after"}])
        await templates.close()
        return text

    assert asyncio.run(run()) == "after"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (None, "Use /v1/completions"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% if %}", "is broken"),
    ],
)
def test_what_a_template_will_not_do_is_told_to_the_client(template, said):
    async def run() -> None:
        templates = Templates(tokenizer(template), seconds=5)
        with pytest.raises(ApiError, match=said) as caught:
            await templates.render([{"role": "user", "content": "x"}])
        assert "--chat" not in str(caught.value)
        await templates.close()

    asyncio.run(run())
