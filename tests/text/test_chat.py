import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from outrider.errors import CheckpointError, OutriderError, UsageError
from outrider.text.chat import RejectedChatError, render_chat

CHATML = """\
{% for message in messages %}
  {% if loop.first and message.role != 'system' %}
<|im_start|>system
Be brief.<|im_end|>
  {% endif %}
<|im_start|>{{ message['role'] }}
{{ message['content'] | trim }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""
TOOLS = """\
{{- bos_token }}
{%- if tools is not none %}
    {{- '# Tools\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson(indent=2) }}
        {{- '\\n' }}
    {%- endfor %}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'skip' %}{% continue %}{% endif %}
    {%- if message.tool_calls is defined %}
        {%- for call in message.tool_calls %}
            {{- '<call>' ~ call.function.name ~ ' ' ~ (call.function.arguments | tojson) }}
        {%- endfor %}
    {%- else %}
        {{- message.content }}
    {%- endif %}
    {{- eos_token }}
{%- endfor %}
"""
THINKING = """\
{%- macro show(content) -%}
    {%- if content is string -%}{{ content }}
    {%- else -%}{% for part in content %}{{ part.text if part.type == 'text' }}{% endfor %}
    {%- endif -%}
{%- endmacro -%}
{%- set ns = namespace(last=-1) -%}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
    {{- '[' ~ message.role ~ ']' ~ show(message.content) -}}
    {%- if loop.index0 > ns.last and '</think>' in message.content -%}
        {{- message.content.split('</think>')[-1].lstrip('\\n') -}}
    {%- endif -%}
{%- endfor -%}
{%- if enable_thinking is defined and enable_thinking is false -%}<think></think>{%- endif -%}
"""
GENERATION = """\
{% for message in messages %}
{% if message.role == 'assistant' %}
{% generation %}
{% set shown = message.content %}
{{ shown }}{{ eos_token }}
{% endgeneration %}
[{{ shown }}]
{% else %}
{{ message.role | upper }}: {{ message.content }}
{% endif %}
{% endfor %}
"""
DATED = """\
{{ strftime_now('%d %B %Y') }}{{ documents }}
{%- for message in messages %}
{%- if loop.index > 2 %}{% break %}{% endif %}
{{ message | tojson }} {{ message.items() | list }}
{%- endfor %}
"""
TEMPLATES = {
    "chatml": CHATML,
    "tools": TOOLS,
    "thinking": THINKING,
    "generation": GENERATION,
    "dated": DATED,
}
CHATS = {
    "one": [{"role": "user", "content": ' Say <é> & "日本" \n'}],
    "turns": [
        {"role": "system", "content": "You're terse."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "<think>hm</think>\n\nHello."},
        {"role": "skip", "content": "x", "name": None},
    ],
    "calls": [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "look", "arguments": {"city": "Köln", "n": 1.5}}}],
        },
    ],
}
TOOL = {"type": "function", "function": {"name": "look", "description": "<b>ü</b>"}}


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    "variables",
    [{}, {"add_generation_prompt": False, "tools": [TOOL]}, {"enable_thinking": False}],
    ids=["plain", "tools", "no thinking"],
)
def test_a_chat_renders_as_transformers_renders_it(chat, template, variables):
    text = TEMPLATES[template]
    names = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", **variables}
    plain = [{k: v for k, v in message.items() if v is not None} for message in CHATS[chat]]
    expected, _ = render_jinja_template([plain], chat_template=text, **names)
    assert render_chat(text, CHATS[chat], **names) == expected[0]


def test_a_model_without_template_says_to_leave_out_the_flag():
    with pytest.raises(UsageError, match="without --chat"):
        render_chat(None, CHATS["one"])


def test_a_refusal_of_the_template_is_about_the_messages():
    template = "{% for m in messages %}\n{{ raise_exception('Roles must\nalternate') }}{% endfor %}"
    with pytest.raises(RejectedChatError, match=r"line 2, refuses: Roles must alternate$"):
        render_chat(template, CHATS["one"])


BROKEN = {
    "an unclosed block": ("Hi\n{% for m in messages %}{{ m.role }}", "line 2"),
    "an unknown filter": ("\n\n{{ messages | shout }}", "line 3"),
    "an unknown tag": ("{% frobnicate %}", "line 1"),
    "a field of something undefined": ("\n{{ messages[0].colour.name }}", "line 2"),
    "a sum of text and nothing": ("\n\n{{ 'x' + messages }}", "line 3"),
    "a missing special token": ("{{ 'x' + bos_token }}", "line 1"),
    "a look behind the sandbox": ("\n{{ messages.__class__.__mro__ }}", "line 2"),
    "a change of the messages": ("\n{% set _ = messages.append(1) %}", "line 2"),
    "an endless macro": ("{% macro f() %}\n{{ f() }}{% endmacro %}{{ f() }}", "line 2"),
    "a huge range": ("{% for i in range(999999999) %}{% endfor %}", "line 1"),
    "a division by zero": ("a\nb{{ 1 / 0 }}", "line 2"),
    "deep brackets": ("{{ " + "(" * 20000 + ")" * 20000 + " }}", "is broken"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_template_is_one_line_that_says_where(name):
    template, place = BROKEN[name]
    with pytest.raises(CheckpointError) as caught:
        render_chat(template, CHATS["one"])
    message = str(caught.value)
    assert place in message
    assert "without --chat" in message
    assert "\n" not in message


def test_errors_stay_in_the_tree_of_errors():
    assert issubclass(RejectedChatError, OutriderError)


def test_the_messages_of_the_caller_are_left_as_they_were():
    messages = [{"role": "user", "content": "x", "name": None}]
    render_chat(CHATML, messages)
    assert messages == [{"role": "user", "content": "x", "name": None}]
