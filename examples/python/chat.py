"""The chat harness: the whole conversation of the session, then one model call, then its usage.

It does what `src/harnesses/chat.ts` does, effect by effect: both write the same journal. Its config is a JSON object, every key
optional: {"system_prompt": string, "model": string, "params": {name: string | number | boolean}}.

- A turn without inputs answers what is still unanswered, such as the inputs of a turn that failed. When there is nothing to answer
  the turn completes without a model call.
- A config that cannot be read and a missing model end the turn FAILED: no later try would go better.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from holdfast_harness import (
    Capabilities,
    Conversation,
    Harness,
    HarnessFailure,
    Message,
    ModelResponse,
    Resumability,
    Sink,
    Start,
    serve,
    text_message,
)

harness = Harness(
    id="chat",
    version="1",
    capabilities=Capabilities(
        resumability=Resumability.RESUMABILITY_STATELESS_REPLAY, fork_safe=True, streaming=True, reasoning_replay=True
    ),
)


@harness.run
async def run(start: Start, sink: Sink) -> None:
    config = read_config(start.config)
    conversation = (await Conversation.of(start)).messages()
    if not is_unanswered(conversation, start.inputs):
        return
    model = config.model or start.model
    if model == "":
        raise HarnessFailure("failed_precondition", "model: none is set; set the session's model, or model in the turn's config")
    if config.system_prompt:
        conversation.insert(0, text_message("system", config.system_prompt))
    response = await sink.model(conversation, model=model, params=config.params)
    await record_usage(sink, response)


def is_unanswered(conversation: Sequence[Message], inputs: Sequence[Message]) -> bool:
    """An input in the assistant's own words is an answer to be continued."""
    last = next((message for message in reversed(conversation) if message.role != "system"), None)
    if last is None:
        return False
    return last.role != "assistant" or any(last is message for message in inputs)


async def record_usage(sink: Sink, response: ModelResponse) -> None:
    """A usage of nothing is not recorded; see echo.py."""
    usage = response.usage
    if usage.input_tokens or usage.output_tokens or usage.reasoning_tokens:
        await sink.usage(usage)


@dataclass(frozen=True)
class ChatConfig:
    system_prompt: str = ""
    model: str = ""
    params: dict[str, str] = field(default_factory=dict)


KEYS = ("system_prompt", "model", "params")


def read_config(data: bytes) -> ChatConfig:
    """A key that is not known is refused, since it was meant for something."""
    config = json_object(data) if data else {}
    for key in config:
        if key not in KEYS:
            raise invalid(field_of("config", key), f"is not known; known are {', '.join(KEYS)}")
    return ChatConfig(text_key(config, "system_prompt"), text_key(config, "model"), params_key(config.get("params", {})))


def json_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_int=float, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise invalid("config", "must be a JSON object in UTF-8")
    return value


def refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def text_key(config: dict[str, Any], key: str) -> str:
    value = config.get(key, "")
    if not isinstance(value, str) or not is_well_formed(value):
        raise invalid(f"config.{key}", "must be a string")
    return value


def params_key(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise invalid("config.params", "must be an object of strings, numbers and booleans")
    params: dict[str, str] = {}
    for name, param in value.items():
        text = param_text(param)
        if text is None or not is_well_formed(text) or not is_well_formed(name):
            raise invalid(field_of("config.params", name), "must be a string, a number or a boolean")
        params[name] = text
    return params


def param_text(param: object) -> str | None:
    if isinstance(param, str):
        return param
    if isinstance(param, bool):
        return "true" if param else "false"
    return number_text(param) if isinstance(param, float) else None


def number_text(number: float) -> str:
    """A number as JavaScript writes it, since that is what other harnesses of this conversation record."""
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    if digits == (0,):
        return "0"
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if not -6 < point <= 21:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        plain = f"{text[0]}{fraction}e{point - 1:+d}"
    elif point <= 0:
        plain = f"0.{'0' * -point}{text}"
    elif point >= len(text):
        plain = text + "0" * (point - len(text))
    else:
        plain = f"{text[:point]}.{text[point:]}"
    return f"-{plain}" if sign else plain


def is_well_formed(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def field_of(parent: str, key: str) -> str:
    """What an error calls a key: one that could be anything is not repeated."""
    return f"{parent}.{key}" if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", key) else parent


def invalid(name: str, what: str) -> HarnessFailure:
    return HarnessFailure("invalid_argument", f"{name}: {what}")


if __name__ == "__main__":
    serve(harness)
