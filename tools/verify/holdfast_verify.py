#!/usr/bin/env python3
"""Verifies exported agent-session journals. One file, standard library only, Python 3.8 or later.

    holdfast_verify.py [options] FILE...        "-" reads standard input

A journal is the hash chain of one session's records. Each record's content_hash is the SHA-256 of the canonical JSON
(RFC 8785) of its event, its seq and the content_hash before it. This program shares no code with the server that wrote the
journal: it has a canonicaliser of its own, recomputes every hash and checks every link.

Input is one of two things, both in proto3 JSON with the contract's own field names (snake_case):

A journal alone: JSON lines of LogRecords, a JSON array of them, or a JSON object that has them under "records". A forked session's
journal begins with the records that it shares with its parent, so it is a plain chain from seq 1.

An export (docs/export.md), as JSON lines: sessions with the records that each wrote itself, forks hanging on the records that they
share, and the head of each session, which may be signed. With --trusted-keys every session must be signed by a key of the list:
public keys in PEM (Ed25519), and ids of keys (16 to 64 hex digits of the SHA-256 of the key), one a line.

What is hashed is the JSON as it is given. A record is therefore refused ("unreadable") where its JSON could say one thing to
this program and another to a reader: a key that occurs twice, a number that its reader would round, a name or a type that is
not the contract's, a default value that the pinned form leaves out.

What the chain cannot tell: the fence of a record is outside the hash, as are the facts of a session and what is kept beside
records; and a journal that was cut short is intact as far as it goes. Give --head-seq or --head-hash, as the session or a later
export has them, to find that out.

Exit status: 0 every journal is intact, 1 one is broken, 2 an input cannot be read as a journal (or the command line is wrong, or the
verdict cannot be written).
"""

import argparse
import base64
import binascii
import calendar
import hashlib
import json
import re
import sys
from decimal import Decimal

INTACT, BROKEN, UNREADABLE = 0, 1, 2
FAULTS_SHOWN_MAX = 20
# A record takes 4 MiB at most, and a byte of it six characters as an escape.
LINE_BYTES_MAX = 32 * 1024 * 1024
# Lists and objects inside one another. Readers of records stop at 100 messages, of which each takes two of them at most.
JSON_DEPTH_MAX = 256


class NotAJournal(Exception):
    """The input as a whole cannot be read."""


class Refused(Exception):
    """A record that cannot be read, or whose JSON is not in the pinned form."""


# --- JSON, read so that nothing in it is lost -------------------------------------------------------------------------------


class Pairs(list):
    """A JSON object as the pairs of its text: a dict would drop a key that occurs twice."""


class Number(str):
    """A JSON number as its text: a float would round it."""


def refuse_constant(name):
    raise ValueError("%s is no JSON" % name)


# Other white space of Unicode is none in JSON.
JSON_SPACE = " \t\r\n"


def parse_json(text):
    return json.loads(
        text,
        object_pairs_hook=Pairs,
        parse_float=Number,
        parse_int=Number,
        parse_constant=refuse_constant,
    )


TOKENS_OF_DEPTH = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def is_too_deep(text):
    """Whether more lists and objects are open somewhere in a JSON text than in any that is written."""
    if text.count("[") + text.count("{") <= JSON_DEPTH_MAX:
        return False
    depth = 0
    for match in TOKENS_OF_DEPTH.finditer(text):
        token = match.group()
        depth += 1 if token in "[{" else -1 if token in "]}" else 0
        if depth > JSON_DEPTH_MAX:
            return True
    return False


def as_dict(value, where):
    """The object `value` as a dict. Refuses anything else, and a key that occurs twice."""
    if not isinstance(value, Pairs):
        raise Refused("%s must be an object" % where)
    members = dict(value)
    if len(members) != len(value):
        raise Refused("%s has a key twice" % where)
    for key in members:
        check_text(key, where)
    return members


def check_text(text, where):
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise Refused("%s holds a lone surrogate" % where)


# --- Canonical JSON (RFC 8785) ----------------------------------------------------------------------------------------------

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
ESCAPED = re.compile('["\\\\\x00-\x1f]')


def escape(match):
    char = match.group()
    return ESCAPES.get(char) or "\\u%04x" % ord(char)


def canonical_text(text):
    return '"' + ESCAPED.sub(escape, text) + '"'


def canonical_number(value):
    """A finite float in ECMAScript's form. Both languages find the same shortest digits; they place them differently."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    point = len(text) + exponent  # value = 0.text * 10 ** point
    if 0 < point <= 21:
        body = text.ljust(point, "0") if len(text) <= point else text[:point] + "." + text[point:]
    elif -6 < point <= 0:
        body = "0." + "0" * -point + text
    else:
        mantissa = text if len(text) == 1 else text[0] + "." + text[1:]
        body = "%se%+d" % (mantissa, point - 1)
    return "-" + body if sign else body


def utf16_units(key):
    return key.encode("utf-16-be")


def canonical_members(members):
    """An object of texts that are canonical already, by key."""
    ordered = sorted(members, key=utf16_units)
    return "{" + ",".join(canonical_text(key) + ":" + members[key] for key in ordered) + "}"


def canonical_value(value, where):
    """Any JSON value: what a Struct may hold."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, Number):
        return canonical_double(value, where)
    if isinstance(value, str):
        check_text(value, where)
        return canonical_text(value)
    if isinstance(value, Pairs):
        return canonical_struct(value, where)
    return "[" + ",".join(canonical_value(item, where) for item in value) + "]"


def canonical_struct(value, where):
    return canonical_members({key: canonical_value(held, where) for key, held in as_dict(value, where).items()})


def canonical_double(token, where):
    """A number token, which must say exactly what its canonical form says, or its reader would see another value."""
    value = float(token)
    if value in (float("inf"), float("-inf")):
        raise Refused("%s holds a number that is too large" % where)
    text = canonical_number(value)
    try:
        exact = Decimal(token) == Decimal(text) and not (value == 0 and token.startswith("-"))
    except ArithmeticError:
        # Beyond what Decimal holds, so beyond what a double is exact in.
        exact = False
    if not exact:
        raise Refused("%s holds a number that is rounded when it is read: %s" % (where, text))
    return text


# --- The contract's messages ------------------------------------------------------------------------------------------------

INT64_TEXT = re.compile(r"-?[1-9][0-9]{0,18}\Z|0\Z", re.ASCII)
INT32_TEXT = re.compile(r"-?[1-9][0-9]{0,9}\Z", re.ASCII)
TIMESTAMP_TEXT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{3}|[0-9]{6}|[0-9]{9}))?Z\Z", re.ASCII
)


def string(value, where):
    if not isinstance(value, str) or isinstance(value, Number):
        raise Refused("%s must be a string" % where)
    check_text(value, where)
    return canonical_text(value)


def populated_string(value, where):
    text = string(value, where)
    if value == "":
        raise Refused("%s is empty and must be left out" % where)
    return text


def any_int64(value, where):
    text = string(value, where)
    if not INT64_TEXT.match(value) or not -(2**63) <= int(value) < 2**63:
        raise Refused("%s must be a 64-bit integer in a string" % where)
    return text


def int64(value, where):
    text = any_int64(value, where)
    if value == "0":
        raise Refused("%s is 0 and must be left out" % where)
    return text


def int32(value, where):
    if not isinstance(value, Number) or not INT32_TEXT.match(value) or not -(2**31) <= int(value) < 2**31:
        raise Refused("%s must be a 32-bit integer other than 0" % where)
    return str(value)


def boolean(value, where):
    if value is not True:
        raise Refused("%s must be true or left out" % where)
    return "true"


def any_bytes(value, where):
    text = string(value, where)
    try:
        exact = base64.b64encode(base64.b64decode(value, validate=True)).decode("ascii") == value
    except (binascii.Error, ValueError):
        exact = False
    if not exact:
        raise Refused("%s must be standard base64 with padding" % where)
    return text


def populated_bytes(value, where):
    text = any_bytes(value, where)
    if value == "":
        raise Refused("%s is empty and must be left out" % where)
    return text


def timestamp(value, where):
    text = string(value, where)
    match = TIMESTAMP_TEXT.match(value)
    if not match or not is_time(*map(int, match.groups()[:6])) or (match.group(7) or "1").endswith("000"):
        raise Refused("%s must be a time in UTC with 0, 3, 6 or 9 fraction digits, as few as will do" % where)
    return text


def is_time(year, month, day, hour, minute, second):
    if year < 1 or not 1 <= month <= 12 or hour > 23 or minute > 59 or second > 59:
        return False
    return 1 <= day <= calendar.monthrange(year, month)[1]


def enum(*names):
    """An enum by its names, the unspecified one first; a number that has no name stands for itself."""

    def check(value, where):
        if isinstance(value, Number):
            text = int32(value, where)
            if 0 < int(value) < len(names):
                raise Refused("%s must be given by its name" % where)
            return text
        text = string(value, where)
        if value not in names[1:]:
            raise Refused("%s must be one of %s" % (where, ", ".join(names[1:])))
        return text

    check.names = names
    return check


def list_of(item):
    def check(value, where):
        if not isinstance(value, list) or isinstance(value, Pairs) or not value:
            raise Refused("%s must be a list that is not empty" % where)
        return "[" + ",".join(item(held, "%s[%d]" % (where, index)) for index, held in enumerate(value)) + "]"

    return check


def string_map(value, where):
    members = as_dict(value, where)
    if not members:
        raise Refused("%s is empty and must be left out" % where)
    return canonical_members({key: string(held, where) for key, held in members.items()})


class Message:
    """A message: its fields by name, and its oneofs, of each of which one field may be there."""

    def __init__(self, fields=None, oneofs=()):
        self.fields = fields or {}
        self.oneofs = oneofs

    def __call__(self, value, where):
        members = as_dict(value, where)
        for oneof in self.oneofs:
            present = [name for name in oneof if name in members]
            if len(present) > 1:
                raise Refused("%s has both %s and %s" % (where, present[0], present[1]))
        texts = {}
        for name, held in members.items():
            check = self.fields.get(name)
            if check is None:
                raise Refused("%s has a field that the contract does not have: %s" % (where, canonical_text(name)))
            texts[name] = check(held, where + "." + name)
        return canonical_members(texts)


MEDIATION = enum(
    "MEDIATION_UNSPECIFIED", "MEDIATION_IN_HARNESS_REPORTED", "MEDIATION_CONTROLLER_MEDIATED", "MEDIATION_REQUIRES_APPROVAL"
)
EVENT_KIND = enum(
    *("EVENT_KIND_UNSPECIFIED", "EVENT_INPUT", "EVENT_MODEL_CALL", "EVENT_OUTPUT", "EVENT_TOOL_CALL", "EVENT_TOOL_RESULT"),
    *("EVENT_APPROVAL_REQUEST", "EVENT_APPROVAL_RESULT", "EVENT_USAGE", "EVENT_LIFECYCLE", "EVENT_END", "EVENT_ERROR"),
    *("EVENT_EXECUTION_START", "EVENT_PARKED"),
)
LIFECYCLE_KIND = enum(
    *("LIFECYCLE_UNSPECIFIED", "LIFECYCLE_SUSPEND", "LIFECYCLE_RESUME", "LIFECYCLE_FORK", "LIFECYCLE_BASELINE"),
    *("LIFECYCLE_CANCEL", "LIFECYCLE_DELETE"),
)
MODE = enum("MODE_UNSPECIFIED", "MODE_AUTO", "MODE_NONE", "MODE_REQUIRED")
CODE = enum("CODE_UNSPECIFIED", "APPROVAL_DENIED", "EXECUTOR_ERROR")


def strings(*names):
    return {name: populated_string for name in names}


PART = Message(oneofs=[("text", "file", "data", "reasoning", "tool_call", "tool_result")])
MESSAGE = Message({**strings("role"), "parts": list_of(PART)})
FILE_PART = Message({**strings("mime", "name", "digest"), "bytes": any_bytes, "uri": string}, [("bytes", "uri")])
REASONING_PART = Message(
    {
        **strings("provider", "model_id", "item_id", "validity_scope", "opaque_digest"),
        "opaque_bytes": any_bytes,
        "opaque_uri": string,
        "summary": list_of(PART),
        "ordinal": int32,
    },
    [("opaque_bytes", "opaque_uri")],
)
TOOL_CALL = Message({**strings("id", "tool", "idempotency_key"), "args": canonical_struct, "mediation": MEDIATION})
TOOL_RESULT = Message(
    {
        **strings("id", "output_uri", "error", "output_digest"),
        "output": canonical_struct,
        "is_error": boolean,
        "content": list_of(PART),
        "code": CODE,
        "approval_request_seq": int64,
        "approval_decision_seq": int64,
    }
)
PART.fields.update(
    text=Message(strings("text")),
    file=FILE_PART,
    data=Message({"data": canonical_struct}),
    reasoning=REASONING_PART,
    tool_call=TOOL_CALL,
    tool_result=TOOL_RESULT,
)
TOOL_DEFINITION = Message({**strings("name", "description"), "input_schema": canonical_struct})
MODEL_CALL = Message(
    {
        **strings("model", "input_hash", "id"),
        "params": string_map,
        "messages": list_of(MESSAGE),
        "tools": list_of(TOOL_DEFINITION),
        "tool_choice": Message({"mode": MODE, **strings("name")}),
    }
)
ERROR = Message({"code": int32, **strings("description")})
BODIES = {
    "message": MESSAGE,
    "model": MODEL_CALL,
    "tool": TOOL_CALL,
    "result": TOOL_RESULT,
    "approval": Message(strings("tool_call_id", "reason")),
    "approval_result": Message({**strings("tool_call_id", "reason"), "approved": boolean, "request_seq": int64}),
    "usage": Message({**strings("model"), "input_tokens": int64, "output_tokens": int64, "reasoning_tokens": int64}),
    "lifecycle": Message(
        {
            **strings("detail", "snapshot_local", "snapshot_external_uri"),
            "kind": LIFECYCLE_KIND,
            "snapshot_memory": boolean,
            "snapshot_sealed": boolean,
        }
    ),
    "end": Message({**strings("state"), "error": ERROR}),
    "error": ERROR,
    "execution_start": Message(
        {
            **strings("harness", "harness_version"),
            "config": populated_bytes,
            "resume_from_seq": int64,
            "input_count": any_int64,
        }
    ),
    "parked": Message({**strings("execution_id", "tool_call_id"), "request_seq": int64}),
}
EVENT = Message(
    {
        **BODIES,
        **strings("execution_id"),
        "ts": timestamp,
        "schema_version": int32,
        "kind": EVENT_KIND,
        "actor": Message(strings("principal", "issuer", "subject")),
    },
    [tuple(BODIES)],
)


# --- The bytes of a record, where an export has them beside its JSON ----------------------------------------------------------

WIRE_DEPTH_MAX = 100


class Scalar:
    """A field that is no message: how it is read from the wire, and how it stands in JSON."""

    def __init__(self, wire, read, default, json):
        self.wire, self.read, self.default, self.json = wire, read, default, json


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def utf8(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("log_record holds text that is no UTF-8")


STRING = Scalar(2, lambda reader: utf8(reader.data()), "", lambda value: value)
BYTES = Scalar(2, lambda reader: reader.data(), b"", lambda value: base64.b64encode(value).decode("ascii"))
INT64 = Scalar(0, lambda reader: signed(reader.varint(), 64), 0, str)
INT32 = Scalar(0, lambda reader: signed(reader.varint(), 32), 0, lambda value: Number(value))
BOOL = Scalar(0, lambda reader: reader.varint() != 0, False, lambda value: value)


def enum_scalar(check):
    names = check.names
    return Scalar(0, INT32.read, 0, lambda value: names[value] if 0 <= value < len(names) else Number(value))


class WireReader:
    """Reads one record. What its message does not have, or has in another wire type, is refused, as no hash would show it."""

    def __init__(self, data):
        self.bytes = data
        self.at = 0
        self.end = len(data)
        self.depth = 0

    def varint(self):
        value = 0
        for shift in range(0, 70, 7):
            if self.at >= self.end:
                break
            byte = self.bytes[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Refused("log_record ends in the middle of a field")

    def data(self):
        length = self.varint()
        if length > self.end - self.at:
            raise Refused("log_record ends in the middle of a field")
        self.at += length
        return self.bytes[self.at - length : self.at]

    def double(self):
        if self.end - self.at < 8:
            raise Refused("log_record ends in the middle of a field")
        self.at += 8
        return double_of(int.from_bytes(self.bytes[self.at - 8 : self.at], "little"))

    def each(self, fields, is_entry=False):
        """Enters a message and yields its fields; what is yielded must have been read before the next one is asked for."""
        length, outer = self.varint(), self.end
        if length > outer - self.at:
            raise Refused("log_record ends in the middle of a field")
        self.end = self.at + length
        self.depth += 0 if is_entry else 1
        if self.depth >= WIRE_DEPTH_MAX:
            raise Refused("log_record is nested too deeply")
        yield from self.fields(fields)
        self.depth -= 0 if is_entry else 1
        self.end = outer

    def fields(self, fields):
        while self.at < self.end:
            tag = self.varint()
            field = fields.get(tag >> 3)
            if field is None or field[1].wire != tag & 7:
                raise Refused("log_record holds a field that the contract does not have, or not in this wire type")
            yield field


def double_of(bits):
    """The double of these 64 bits, exactly."""
    exponent, fraction = bits >> 52 & 0x7FF, bits & (2**52 - 1)
    if exponent == 0x7FF:
        raise Refused("log_record holds a number that has no JSON form")
    value = fraction * 2.0**-1074 if exponent == 0 else (2**52 + fraction) * 2.0**-52 * 2.0 ** (exponent - 1023)
    return -value if bits >> 63 else value


class WireMessage:
    """A message on the wire: its fields by number, those that are written even when they are zero, and its oneofs."""

    wire = 2

    def __init__(self, fields, explicit=(), oneofs=()):
        self.fields = fields
        self.explicit = frozenset(explicit).union(*oneofs)
        self.oneofs = oneofs

    def read(self, reader, held=None):
        return self.take(reader.each(self.fields), reader, held)

    def take(self, fields, reader, held=None):
        held = {} if held is None else held
        for name, kind in fields:
            for oneof in self.oneofs:
                if name in oneof:
                    for other in oneof:
                        if other != name:
                            held.pop(other, None)
            held[name] = kind.read(reader) if isinstance(kind, Scalar) else kind.read(reader, held.get(name))
        return held

    def json(self, held):
        kinds = dict(self.fields.values())
        pairs = Pairs()
        for name, value in held.items():
            kind = kinds[name]
            if not isinstance(kind, Scalar) or name in self.explicit or value != kind.default:
                pairs.append((name, kind.json(value)))
        return pairs


class WireList:
    wire = 2

    def __init__(self, item):
        self.item = item

    def read(self, reader, held=None):
        return (held or []) + [self.item.read(reader)]

    def json(self, held):
        return [self.item.json(value) for value in held]


class WireTexts:
    """A map of texts to texts."""

    wire = 2
    ENTRY = {1: ("key", STRING), 2: ("value", STRING)}

    def read(self, reader, held=None):
        entry = {"key": "", "value": ""}
        for name, kind in reader.each(self.ENTRY, is_entry=True):
            entry[name] = kind.read(reader)
        return {**(held or {}), entry["key"]: entry["value"]}

    def json(self, held):
        return Pairs(held.items())


class WireTime:
    wire = 2
    FIELDS = {1: ("seconds", INT64), 2: ("nanos", INT32)}

    def read(self, reader, held=None):
        held = {"seconds": 0, "nanos": 0} if held is None else held
        for name, kind in reader.each(self.FIELDS):
            held[name] = kind.read(reader)
        return held

    def json(self, held):
        return time_text(held["seconds"], held["nanos"])


def time_text(seconds, nanos):
    if not -62135596800 <= seconds <= 253402300799 or not 0 <= nanos <= 999999999:
        raise Refused("log_record holds a time that has no JSON form")
    days, second = divmod(seconds, 86400)
    days += 719162  # since the first day of year 1
    year = min(9999, days * 400 // 146097 + 1)
    while days_before(year) > days:
        year -= 1
    while year < 9999 and days_before(year + 1) <= days:
        year += 1
    day, month = days - days_before(year), 1
    while day >= calendar.monthrange(year, month)[1]:
        day -= calendar.monthrange(year, month)[1]
        month += 1
    fraction = ".%09d" % nanos if nanos % 1000 else ".%06d" % (nanos // 1000) if nanos % 1000000 else ".%03d" % (nanos // 1000000)
    when = (year, month, day + 1, second // 3600, second // 60 % 60, second % 60)
    return "%04d-%02d-%02dT%02d:%02d:%02d" % when + (fraction if nanos else "") + "Z"


def days_before(year):
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400


class WireStruct:
    """A Struct, and the values in it. They are kept as the JSON that they are, objects as dicts."""

    wire = 2
    NO_KIND = object()

    def read(self, reader, held=None):
        held = {} if held is None else held
        for _ in reader.each(STRUCT_FIELDS):
            key, value = "", self.NO_KIND
            for name, kind in reader.each(STRUCT_ENTRY, is_entry=True):
                if name == "key":
                    key = kind.read(reader)
                else:
                    value = self.value(reader, value)
            if value is self.NO_KIND:
                raise Refused("log_record holds a value without a kind")
            held[key] = value
        return held

    def value(self, reader, value):
        for name, kind in reader.each(VALUE_FIELDS):
            if name == "null":
                kind.read(reader)
                value = None
            elif name == "struct":
                value = self.read(reader, value if isinstance(value, dict) else None)
            elif name == "list":
                value = list(value) if isinstance(value, list) else []
                for _ in reader.each(LIST_FIELDS):
                    value.append(self.value(reader, self.NO_KIND))
            else:
                value = kind.read(reader)
        if value is self.NO_KIND:
            raise Refused("log_record holds a value without a kind")
        return value

    def json(self, value):
        if isinstance(value, dict):
            return Pairs((key, self.json(held)) for key, held in value.items())
        if isinstance(value, list):
            return [self.json(held) for held in value]
        return Number(canonical_number(value)) if isinstance(value, float) else value


STRUCT = WireStruct()
STRUCT_FIELDS = {1: ("entry", STRUCT)}
STRUCT_ENTRY = {1: ("key", STRING), 2: ("value", STRUCT)}
LIST_FIELDS = {1: ("value", STRUCT)}
VALUE_FIELDS = {
    1: ("null", INT32),
    2: ("number", Scalar(1, lambda reader: reader.double(), None, None)),
    3: ("text", STRING),
    4: ("truth", BOOL),
    5: ("struct", STRUCT),
    6: ("list", STRUCT),
}


def fields_of(*declared):
    """Fields numbered from 1, in the order in which the contract has them."""
    return dict(enumerate(declared, 1))


def texts(*names):
    return [(name, STRING) for name in names]


WIRE_PART = WireMessage({}, oneofs=[("text", "file", "data", "reasoning", "tool_call", "tool_result")])
WIRE_PARTS = WireList(WIRE_PART)
WIRE_MESSAGE = WireMessage(fields_of(("role", STRING), ("parts", WIRE_PARTS)))
WIRE_FILE = WireMessage(
    fields_of(("mime", STRING), ("bytes", BYTES), *texts("uri", "name", "digest")),
    oneofs=[("bytes", "uri")],
)
WIRE_REASONING = WireMessage(
    fields_of(
        *texts("provider", "model_id"),
        ("opaque_bytes", BYTES),
        ("opaque_uri", STRING),
        ("summary", WIRE_PARTS),
        ("item_id", STRING),
        ("ordinal", INT32),
        *texts("validity_scope", "opaque_digest"),
    ),
    oneofs=[("opaque_bytes", "opaque_uri")],
)
WIRE_TOOL_CALL = WireMessage(
    fields_of(*texts("id", "tool"), ("args", STRUCT), ("mediation", enum_scalar(MEDIATION)), ("idempotency_key", STRING))
)
WIRE_TOOL_RESULT = WireMessage(
    fields_of(
        ("id", STRING),
        ("output", STRUCT),
        ("output_uri", STRING),
        ("is_error", BOOL),
        *texts("error", "output_digest"),
        ("content", WIRE_PARTS),
        ("code", enum_scalar(CODE)),
        ("approval_request_seq", INT64),
        ("approval_decision_seq", INT64),
    )
)
WIRE_PART.fields.update(
    fields_of(
        ("text", WireMessage(fields_of(("text", STRING)))),
        ("file", WIRE_FILE),
        ("data", WireMessage(fields_of(("data", STRUCT)))),
        ("reasoning", WIRE_REASONING),
        ("tool_call", WIRE_TOOL_CALL),
        ("tool_result", WIRE_TOOL_RESULT),
    )
)
WIRE_TOOL = WireMessage(fields_of(*texts("name", "description"), ("input_schema", STRUCT)))
WIRE_MODEL_CALL = WireMessage(
    fields_of(
        ("model", STRING),
        ("params", WireTexts()),
        *texts("input_hash", "id"),
        ("messages", WireList(WIRE_MESSAGE)),
        ("tools", WireList(WIRE_TOOL)),
        ("tool_choice", WireMessage(fields_of(("mode", enum_scalar(MODE)), ("name", STRING)))),
    )
)
WIRE_ERROR = WireMessage(fields_of(("code", INT32), ("description", STRING)))
WIRE_APPROVAL_RESULT = fields_of(("tool_call_id", STRING), ("approved", BOOL), ("reason", STRING), ("request_seq", INT64))
WIRE_USAGE = fields_of(("model", STRING), ("input_tokens", INT64), ("output_tokens", INT64), ("reasoning_tokens", INT64))
WIRE_LIFECYCLE = fields_of(
    ("kind", enum_scalar(LIFECYCLE_KIND)),
    *texts("detail", "snapshot_local", "snapshot_external_uri"),
    ("snapshot_memory", BOOL),
    ("snapshot_sealed", BOOL),
)
WIRE_START = fields_of(("config", BYTES), ("resume_from_seq", INT64), ("input_count", INT64), *texts("harness", "harness_version"))
WIRE_EVENT = WireMessage(
    {
        2: ("execution_id", STRING),
        3: ("ts", WireTime()),
        4: ("schema_version", INT32),
        7: ("kind", enum_scalar(EVENT_KIND)),
        8: ("message", WIRE_MESSAGE),
        9: ("model", WIRE_MODEL_CALL),
        10: ("tool", WIRE_TOOL_CALL),
        11: ("result", WIRE_TOOL_RESULT),
        12: ("approval", WireMessage(fields_of(*texts("tool_call_id", "reason")))),
        13: ("approval_result", WireMessage(WIRE_APPROVAL_RESULT)),
        14: ("usage", WireMessage(WIRE_USAGE)),
        15: ("lifecycle", WireMessage(WIRE_LIFECYCLE)),
        16: ("end", WireMessage(fields_of(("state", STRING), ("error", WIRE_ERROR)))),
        17: ("error", WIRE_ERROR),
        18: ("actor", WireMessage(fields_of(*texts("principal", "issuer", "subject")))),
        19: ("execution_start", WireMessage(WIRE_START, explicit=["input_count"])),
        20: ("parked", WireMessage(fields_of(*texts("execution_id", "tool_call_id"), ("request_seq", INT64)))),
    },
    oneofs=[tuple(BODIES)],
)
WIRE_RECORD = WireMessage(fields_of(("seq", INT64), *texts("prev_hash", "content_hash"), ("fence", INT64), ("event", WIRE_EVENT)))


def record_of_bytes(data):
    """The JSON of a record's bytes."""
    reader = WireReader(data)
    return WIRE_RECORD.json(WIRE_RECORD.take(reader.fields(WIRE_RECORD.fields), reader))


# --- The chain --------------------------------------------------------------------------------------------------------------


class Record:
    """A LogRecord's envelope and the canonical text of its event."""

    FIELDS = ("seq", "prev_hash", "content_hash", "fence", "event")

    def __init__(self, value):
        members = as_dict(value, "record")
        for name in members:
            if name not in self.FIELDS:
                raise Refused("record has a field that the contract does not have: %s" % canonical_text(name))
        for name, check in (("seq", any_int64), ("fence", any_int64), ("prev_hash", string), ("content_hash", string)):
            if name in members:
                check(members[name], "record." + name)
        if "event" not in members:
            raise Refused("record has no event")
        self.seq = int(members.get("seq", "0"))
        # An exporter may leave the first record's empty prev_hash out, as the JSON mapping does, or write it.
        self.prev_hash = members.get("prev_hash", "")
        self.content_hash = members.get("content_hash", "")
        self.event = EVENT(members["event"], "event")

    def hash(self):
        envelope = {"event": self.event, "prev_hash": canonical_text(self.prev_hash), "seq": '"%d"' % self.seq}
        return hashlib.sha256(canonical_members(envelope).encode("utf-8")).hexdigest()


class Chain:
    """Checks records in order and keeps what is wrong. After a fault it goes on from what the record says of itself."""

    def __init__(self):
        self.records = 0
        self.faults = []
        self.seq = 0
        self.hash = ""
        self.blind = False

    def fault(self, kind, expected, found):
        self.faults.append({"record": self.records, "seq": self.seq, "kind": kind, "expected": expected, "found": found})

    def push(self, value):
        self.records += 1
        self.seq += 1
        try:
            record = Record(value)
        except (Refused, RecursionError) as refusal:
            found = str(refusal) if isinstance(refusal, Refused) else "event is nested too deeply"
            self.fault("unreadable", "a record in the pinned form", found)
            # Its hash is not known, so the next record's link cannot be judged.
            self.blind = True
            return
        if record.seq != self.seq:
            self.fault("seq", str(self.seq), str(record.seq))
        if record.prev_hash != self.hash and not self.blind:
            self.fault("prev-hash", self.hash, record.prev_hash)
        computed = record.hash()
        if record.content_hash != computed:
            self.fault("content-hash", computed, record.content_hash)
        self.seq = record.seq
        self.hash = record.content_hash
        self.blind = False

    def finish(self, head_seq, head_hash):
        if head_seq is not None and head_seq != self.seq:
            self.fault("head", str(head_seq), str(self.seq))
        if head_hash is not None and head_hash != self.hash:
            self.fault("head", head_hash, self.hash)


# --- Ed25519 (RFC 8032), for checking only: nothing here is secret, so nothing here need take the same time ---------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
SPKI_START = bytes.fromhex("302a300506032b6570032100")


def point_of(data):
    """The point that 32 bytes stand for, in extended coordinates; None where they stand for none."""
    sign, y = data[31] >> 7, int.from_bytes(data, "little") & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * ROOT % P
    if (x * x - square) % P != 0 or (x == 0 and sign == 1):
        return None
    x = x if x & 1 == sign else P - x
    return (x, y, 1, x * y % P)


def point_sum(left, right):
    a = (left[1] - left[0]) * (right[1] - right[0]) % P
    b = (left[1] + left[0]) * (right[1] + right[0]) % P
    c = 2 * left[3] * right[3] * D % P
    d = 2 * left[2] * right[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def point_times(scalar, point):
    total = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            total = point_sum(total, point)
        point = point_sum(point, point)
        scalar >>= 1
    return total


def point_bytes(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signature(spki, data, signature):
    """Whether `signature` is that of `data` by the Ed25519 key `spki` (SubjectPublicKeyInfo in DER)."""
    if len(spki) != 44 or not spki.startswith(SPKI_START) or len(signature) != 64:
        return False
    key, start, scalar = spki[12:], signature[:32], int.from_bytes(signature[32:], "little")
    point = point_of(key)
    if point is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(start + key + data).digest(), "little") % ORDER
    negative = (P - point[0], point[1], 1, P - point[3])
    return point_bytes(point_sum(point_times(scalar, BASE), point_times(challenge, negative))) == start


# --- Exports ----------------------------------------------------------------------------------------------------------------

KEY_ID_DIGITS = 16
UID_UNITS_MAX = 128
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
MILLISECONDS = re.compile(r"T[0-9:]{8}(\.[0-9]{3})?Z\Z")
SESSION = Message(
    {
        **strings("harness", "model", "parent_uid"),
        "metadata": Message({**strings("project", "name", "uid"), "create_time": timestamp}),
        "last_seq": int64,
        "fork_seq": int64,
        "identity": Message(strings("principal", "issuer", "subject")),
        "origin": Message({**strings("source", "subject", "uri"), "attributes": string_map}),
        "labels": string_map,
        "annotations": string_map,
    }
)
HEAD_FIELDS = {
    **strings("session", "content_hash", "key_id"),
    "seq": int64,
    "time": timestamp,
    "public_key": populated_bytes,
    "signature": populated_bytes,
}


class TrustedKeys:
    """Public keys in PEM and ids of keys. Nothing of the list is repeated in a message."""

    PEM = re.compile("-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \\1-----")

    def __init__(self, text):
        self.starts = []
        lines = self.PEM.sub(self.take_pem, text)
        for line in lines.split("\n"):
            line = line.strip()
            if line == "" or line.startswith("#"):
                continue
            if not re.match(r"[0-9a-fA-F]{%d,64}\Z" % KEY_ID_DIGITS, line, re.ASCII):
                raise NotAJournal("the trusted keys must be public keys in PEM and ids of %d to 64 hex digits" % KEY_ID_DIGITS)
            self.starts.append(line.lower())
        if not self.starts:
            raise NotAJournal("the list of trusted keys is empty")

    def take_pem(self, match):
        if match.group(1) != "PUBLIC KEY":
            raise NotAJournal("the trusted keys must be public keys in PEM and ids of %d to 64 hex digits" % KEY_ID_DIGITS)
        self.starts.append(hashlib.sha256(base64.b64decode(match.group(2))).hexdigest())
        return ""

    def trusts(self, fingerprint):
        return any(fingerprint.startswith(start) for start in self.starts)


class Session:
    """A session of an export: its facts, and its chain as far as it was read."""

    def __init__(self, members, index):
        SESSION(members.get("session"), "session")
        if "prefix_only" in members:
            boolean(members["prefix_only"], "prefix_only")
        facts = dict(members["session"])
        self.index = index
        self.uid = dict(facts.get("metadata", ())).get("uid", "")
        self.last_seq = int(facts.get("last_seq", "0"))
        self.parent = facts.get("parent_uid", "")
        self.fork_seq = int(facts.get("fork_seq", "0"))
        self.prefix_only = "prefix_only" in members
        if len(self.uid.encode("utf-16-le")) > 2 * UID_UNITS_MAX or CONTROL.search(self.uid):
            raise Refused("session must have a uid of at most %d characters and no control characters" % UID_UNITS_MAX)
        if self.last_seq < 0 or self.fork_seq < 0:
            raise Refused("session must not have a negative seq")
        if not MILLISECONDS.search(dict(facts.get("metadata", ())).get("create_time", "")):
            raise Refused("session must have a create_time in milliseconds")
        if self.uid == "" or (self.parent == "") != (self.fork_seq == 0):
            raise Refused("session must have a uid, and parent_uid and fork_seq both or neither")
        self.inherited = min(self.fork_seq, self.last_seq)
        self.chain = None
        self.records = 0
        self.named = None
        self.may_have_aside = False


class Export:
    """Checks the items of an export in order. What stands in no place where it may stand ends the reading."""

    def __init__(self, trusted):
        self.trusted = trusted
        self.stage = "start"
        self.items = 0
        self.records = 0
        self.sessions = []
        self.by_uid = {}
        self.fork_seqs = {}
        self.hashes = {}
        self.next = 0
        self.current = None
        self.faults = []
        self.signed_by = {}

    def fault(self, kind, session, message):
        self.faults.append({"kind": kind, "session": None if session is None else session.uid, "message": message})

    def push(self, value):
        self.items += 1
        members = as_dict(value, "item %d" % self.items)
        kind = members.pop("kind", None)
        handlers = {"header": self.header, "session": self.session, "end": self.end}
        handlers.update(record=self.record, aside=self.aside, head=self.head)
        if not isinstance(kind, str) or kind not in handlers:
            raise Refused("item %d is of no kind that an export has" % self.items)
        if self.stage == "end":
            raise Refused("item %d follows the end" % self.items)
        if (kind == "header") != (self.stage == "start"):
            raise Refused("item %d is out of its place" % self.items)
        handlers[kind](members)

    def only(self, members, *names):
        if sorted(members) != sorted(names):
            raise Refused("item %d must have these fields and no others: %s" % (self.items, ", ".join(names)))

    def header(self, members):
        self.only(members, "format", "version")
        is_number = isinstance(members["version"], Number)
        if members["format"] != "holdfast.export" or not is_number or members["version"] != "1":
            raise Refused("it is an export of another format or version")
        self.stage = "sessions"

    def session(self, members):
        if self.stage != "sessions":
            raise Refused("item %d is a session behind records" % self.items)
        if any(name not in ("session", "prefix_only") for name in members):
            raise Refused("item %d has a field that a session does not have" % self.items)
        session = Session(members, len(self.sessions))
        if session.uid in self.by_uid:
            raise Refused("session %s is there twice" % shown(session.uid))
        if session.parent != "":
            parent = self.by_uid.get(session.parent)
            if parent is None or not 1 <= session.inherited <= parent.last_seq:
                raise Refused("session %s is a fork of what is not there" % shown(session.uid))
            if not session.prefix_only and session.inherited != session.fork_seq:
                raise Refused("session %s ends before its own first record" % shown(session.uid))
            self.fork_seqs.setdefault(self.owner_of(session.parent, session.inherited), set()).add(session.inherited)
        self.sessions.append(session)
        self.by_uid[session.uid] = session

    def owner_of(self, uid, seq):
        """The session of the line from `uid` up that wrote the record at `seq`."""
        while self.by_uid[uid].parent != "" and seq <= self.by_uid[uid].fork_seq:
            uid = self.by_uid[uid].parent
        return uid

    def at(self, uid):
        session = self.by_uid.get(uid) if isinstance(uid, str) and not isinstance(uid, Number) else None
        if session is None:
            raise Refused("item %d belongs to no session of this export" % self.items)
        if session.index + 1 < self.next:
            raise Refused("item %d belongs to a session that is over" % self.items)
        self.stage = "records"
        while self.current is None or self.current.index < session.index:
            self.advance()
        if session.named is not None:
            raise Refused("item %d follows the head of its session" % self.items)
        return session

    def advance(self):
        self.close()
        session = self.sessions[self.next]
        self.next += 1
        self.current = session
        session.chain = Chain()
        session.chain.seq = session.inherited
        if session.parent == "":
            return
        known = self.hashes.get((self.owner_of(session.parent, session.inherited), session.inherited))
        if known is None:
            session.chain = None
        else:
            session.chain.hash = known

    def record(self, members):
        has_bytes, stored = "log_record" in members, members.pop("log_record", None)
        self.only(members, "session", "record")
        if has_bytes:
            # The bytes of another writer: the record must say what they say, since it is the record that is hashed.
            any_bytes(stored, "log_record")
            said = canonical_value(record_of_bytes(base64.b64decode(stored)), "log_record")
            if said != canonical_value(members["record"], "record"):
                raise Refused("item %d has a log_record that is not the encoding of its record" % self.items)
        self.check_fence(members["record"])
        session = self.at(members["session"])
        self.records += 1
        session.records += 1
        session.may_have_aside = True
        chain = session.chain
        if chain is None:
            return
        chain.push(members["record"])
        if not chain.faults and chain.seq in self.fork_seqs.get(session.uid, ()):
            self.hashes[(session.uid, chain.seq)] = chain.hash

    def check_fence(self, record):
        """A fence is outside the hash, but a server that takes the session over must be able to count on from it."""
        fence = dict(record).get("fence", "0") if isinstance(record, Pairs) else "0"
        if isinstance(fence, str) and INT64_TEXT.match(fence) and not 0 <= int(fence) < 2**53:
            raise Refused("item %d has a fence that is no whole number from 0 to 2^53 - 1" % self.items)

    def aside(self, members):
        self.only(members, "session", "seq", "data")
        any_int64(members["seq"], "seq")
        any_bytes(members["data"], "data")
        session = self.at(members["session"])
        if not session.may_have_aside or int(members["seq"]) != session.inherited + session.records:
            raise Refused("item %d must stand behind the record that it is beside" % self.items)
        session.may_have_aside = False

    def head(self, members):
        for name, held in members.items():
            if name not in HEAD_FIELDS:
                raise Refused("item %d has a field that a head does not have" % self.items)
            HEAD_FIELDS[name](held, name)
        session = self.at(members.get("session"))
        if session.prefix_only:
            raise Refused("item %d is the head of a session of which only a prefix is here" % self.items)
        session.named = members

    def close(self):
        session = self.current
        if session is None:
            return
        self.current = None
        last = session.inherited + session.records
        chain = session.chain
        if chain is None:
            self.fault("chain", session, "its parent's record %d is not right, so nothing can be said of its own" % session.inherited)
        elif chain.faults:
            for found in chain.faults:
                message = "record %d breaks the chain: %s: expected %s, found %s"
                details = (found["seq"], found["kind"], found["expected"], found["found"])
                self.fault("chain", session, message % details)
        elif last > session.last_seq:
            self.fault("chain", session, "it has records after %d, which is to be its last" % session.last_seq)
        elif last < session.last_seq:
            self.fault("truncated", session, "%s missing" % span(last + 1, session.last_seq))
        if not session.prefix_only:
            self.check_head(session, last)

    def check_head(self, session, last):
        named = session.named
        if named is None:
            self.fault("truncated", session, "its head is missing")
            return
        seq = int(named.get("seq", "0"))
        if seq > last:
            self.fault("truncated", session, "%s missing: the head is record %d" % (span(last + 1, seq), seq))
        elif seq < last:
            self.fault("outdated", session, "the head is record %d, older than the last one, %d" % (seq, last))
        elif session.chain is not None and not session.chain.faults and named.get("content_hash", "") != session.chain.hash:
            self.fault("rebuilt", session, "record %d is not the one that the head names: the chain was built anew" % last)
        self.check_signature(session, named)

    def check_signature(self, session, named):
        if "signature" not in named:
            if any(name in named for name in ("time", "key_id", "public_key")):
                self.fault("forged", session, "its head has a part of a signature")
            elif self.trusted is not None:
                self.fault("unsigned", session, "its head has no signature")
            return
        key = base64.b64decode(named.get("public_key", ""))
        fingerprint = hashlib.sha256(key).hexdigest()
        texts = {name: canonical_text(named.get(name, "")) for name in ("session", "content_hash", "time")}
        texts.update(seq=canonical_text(named.get("seq", "0")), type=canonical_text("holdfast.v1.SignedHead"))
        data = canonical_members(texts).encode("utf-8")
        is_named = named.get("key_id") == fingerprint[:KEY_ID_DIGITS] and "time" in named
        if not is_named or not is_signature(key, data, base64.b64decode(named["signature"])):
            self.fault("forged", session, "the signature of its head is not that of the key that it names")
            return
        self.signed_by[session.uid] = fingerprint
        if self.trusted is not None and not self.trusted.trusts(fingerprint):
            self.fault("untrusted", session, "its head is signed by the key %s, which is not trusted" % fingerprint[:KEY_ID_DIGITS])

    def end(self, members):
        self.only(members, "sessions", "records")
        for name in ("sessions", "records"):
            any_int64(members[name], name)
        while self.next < len(self.sessions):
            self.advance()
        self.close()
        if members["sessions"] != str(len(self.sessions)) or members["records"] != str(self.records):
            raise Refused("its end counts other sessions or records than there are")
        self.stage = "end"

    def finish(self):
        if self.stage == "end":
            return
        while self.next < len(self.sessions):
            self.advance()
        self.close()
        raise Refused("it is cut off: its end is missing")


def span(first, last):
    return "record %d is" % first if first >= last else "records %d to %d are" % (first, last)


def is_export(text):
    try:
        first = parse_json(text.lstrip(JSON_SPACE).split("\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, Pairs) and any(key == "kind" for key, _ in first)


def verify_export(path, text, trusted):
    """The report on one export."""
    export = Export(trusted)
    try:
        for value in lines_of(text):
            export.push(value)
        export.finish()
    except (Refused, NotAJournal, RecursionError) as error:
        message = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        export.fault("format", None, message)
    sessions = []
    for session in export.sessions:
        chain = session.chain
        head = {"seq": 0, "hash": ""} if chain is None else {"seq": chain.seq, "hash": chain.hash}
        report = {"uid": session.uid, "prefix_only": session.prefix_only, "records": session.records, "head": head}
        report["signed_by"] = export.signed_by.get(session.uid)
        sessions.append(report)
    verdict = "broken" if export.faults else "intact"
    return {"file": path, "verdict": verdict, "records": export.records, "sessions": sessions, "faults": export.faults}


# --- The input --------------------------------------------------------------------------------------------------------------


def read_text(path):
    try:
        if path != "-":
            with open(path, "rb") as file:
                data = file.read()
        elif sys.stdin is None:
            raise NotAJournal("it is closed")
        else:
            data = sys.stdin.buffer.read()
        return data.decode("utf-8")
    except OSError as error:
        raise NotAJournal("it cannot be read: %s" % error.strerror)
    except UnicodeDecodeError:
        raise NotAJournal("it is no UTF-8")
    except MemoryError:
        raise NotAJournal("it does not fit into memory")


def records_of(text):
    """The records of an export, in whichever of its three forms."""
    try:
        whole = parse_json(text)
    except RecursionError:
        raise NotAJournal("its JSON is nested too deeply")
    except ValueError:
        return lines_of(text)
    if is_too_deep(text):
        raise NotAJournal("its JSON is nested too deeply")
    if isinstance(whole, Pairs):
        lists = [held for key, held in whole if key == "records"]
        if len(lists) > 1:
            raise NotAJournal('it has "records" twice')
        if not lists:
            check_length(text, "its record")
            return [whole]
        whole = lists[0]
    if not isinstance(whole, list) or isinstance(whole, Pairs):
        raise NotAJournal("it is no list of records")
    return whole


def lines_of(text):
    # Only a line feed ends a line; a string may hold the other separators that Python splits at.
    for number, line in enumerate(text.split("\n"), 1):
        check_length(line, "line %d" % number)
        if not line.strip(JSON_SPACE):
            continue
        if is_too_deep(line):
            raise NotAJournal("line %d is nested too deeply" % number)
        try:
            yield parse_json(line)
        except RecursionError:
            raise NotAJournal("line %d is nested too deeply" % number)
        except ValueError:
            raise NotAJournal("line %d is no JSON" % number)


def check_length(text, what):
    # A character takes four bytes at most.
    if len(text) * 4 > LINE_BYTES_MAX and len(text.encode("utf-8")) > LINE_BYTES_MAX:
        raise NotAJournal("%s takes more than %d bytes" % (what, LINE_BYTES_MAX))


def verify(path, head_seq, head_hash, trusted):
    """The report on one journal or export."""
    chain = Chain()
    try:
        text = read_text(path)
        if is_export(text):
            if head_seq is not None or head_hash is not None:
                raise NotAJournal("--head-seq and --head-hash are about a journal alone, and this is an export")
            return verify_export(path, text, trusted)
        if trusted is not None:
            raise NotAJournal("it is no export, so it has no head that could be signed")
        for record in records_of(text):
            chain.push(record)
        if chain.records == 0 and head_seq is None and head_hash is None:
            raise NotAJournal("it holds no record")
    except NotAJournal as error:
        return {"file": path, "verdict": "unreadable", "reason": str(error), "records": chain.records, "faults": chain.faults}
    chain.finish(head_seq, head_hash)
    verdict = "broken" if chain.faults else "intact"
    head = {"seq": chain.seq, "hash": chain.hash}
    return {"file": path, "verdict": verdict, "records": chain.records, "head": head, "faults": chain.faults}


def shown(text):
    """Text of the input as it may go to a terminal: short, and without control characters."""
    text = text if len(text) <= 200 else text[:200] + "…"
    return "".join(char if char.isprintable() else "\\u%04x" % ord(char) for char in text) or '""'


def print_report(report, out):
    name = "standard input" if report["file"] == "-" else report["file"]
    if report["verdict"] == "unreadable":
        print("%s: UNREADABLE: %s" % (name, report["reason"]), file=out)
    elif report["verdict"] == "broken":
        print("%s: BROKEN: %s" % (name, count(len(report["faults"]), "fault")), file=out)
    elif "sessions" in report:
        sizes = (count(report["records"], "record"), count(len(report["sessions"]), "session"))
        print("%s: intact: %s in %s" % ((name,) + sizes), file=out)
        for session in report["sessions"]:
            signed = "" if session["signed_by"] is None else ", signed by %s" % session["signed_by"][:KEY_ID_DIGITS]
            what = "prefix" if session["prefix_only"] else "head"
            print("  %s: %s %d %s%s" % (shown(session["uid"]), what, session["head"]["seq"], session["head"]["hash"], signed), file=out)
    else:
        head = report["head"]
        print("%s: intact: %s, head %d %s" % (name, count(report["records"], "record"), head["seq"], head["hash"]), file=out)
    for fault in report["faults"][:FAULTS_SHOWN_MAX]:
        if "message" in fault:
            whose = "" if fault["session"] is None else shown(fault["session"]) + ": "
            print("  %s%s: %s" % (whose, fault["kind"], shown(fault["message"])), file=out)
            continue
        place = "end" if fault["kind"] == "head" else "record %d (seq %d)" % (fault["record"], fault["seq"])
        expected, found = shown(fault["expected"]), shown(fault["found"])
        print("  %s: %s: expected %s, found %s" % (place, fault["kind"], expected, found), file=out)
    if len(report["faults"]) > FAULTS_SHOWN_MAX:
        print("  and %s more" % count(len(report["faults"]) - FAULTS_SHOWN_MAX, "fault"), file=out)


def count(number, name):
    return "%d %s%s" % (number, name, "" if number == 1 else "s")


class Parser(argparse.ArgumentParser):
    def _print_message(self, message, file=None):
        # Newer versions of Python pass over a stream that cannot be written; then nobody would know that help is missing.
        if message:
            (file or sys.stderr).write(message)


def main(arguments=None):
    parser = Parser(
        prog="holdfast_verify.py", description="Verify agent-session journals and exports of them.", epilog="Exit: 0 intact, 1 broken, 2 unreadable."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help='an export; "-" is standard input')
    parser.add_argument("--head-seq", type=int, metavar="N", help="the seq that the last record must have")
    parser.add_argument("--head-hash", metavar="H", help="the content_hash that the last record must have")
    parser.add_argument("--trusted-keys", metavar="FILE", help="keys, one of which must have signed every session of an export")
    parser.add_argument("--json", action="store_true", help="print one JSON object a file instead of text")
    options = parser.parse_args(arguments)
    if len(options.files) > 1 and (options.head_seq is not None or options.head_hash is not None):
        parser.error("--head-seq and --head-hash are about one journal; give one file")
    # Whatever a journal holds, telling about it must not fail on a terminal that cannot show it.
    sys.stdout.reconfigure(errors="backslashreplace")
    status = INTACT
    try:
        trusted = None if options.trusted_keys is None else TrustedKeys(read_text(options.trusted_keys))
    except (NotAJournal, ValueError) as error:
        parser.error("--trusted-keys: %s" % (error if isinstance(error, NotAJournal) else "it holds a key that is no base64"))
    for path in options.files:
        report = verify(path, options.head_seq, options.head_hash, trusted)
        if options.json:
            print(json.dumps(report))
        else:
            print_report(report, sys.stdout)
        status = max(status, {"intact": INTACT, "broken": BROKEN, "unreadable": UNREADABLE}[report["verdict"]])
    return status


class Nowhere:
    """Takes text that nobody can be shown."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


def run():
    """main, with an exit status also where a stream is closed or cannot be written. Nobody learns the verdict then: that is 2."""
    if sys.stderr is None:
        sys.stderr = Nowhere()
    if sys.stdout is None:
        return lost("it is closed")
    try:
        try:
            status = main()
        except SystemExit as exit:
            # argparse has said what is wrong, or printed its help.
            status = exit.code
        sys.stdout.flush()
        return status
    except OSError as error:
        return lost(error.strerror)
    except KeyboardInterrupt:
        return 130


def lost(why):
    try:
        # A stream that is closed is not flushed once more at the end, which would fail again.
        if sys.stdout is not None:
            sys.stdout.close()
    except (OSError, ValueError):
        pass
    try:
        sys.stderr.write("holdfast_verify.py: standard output cannot be written: %s\n" % why)
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
    return UNREADABLE


if __name__ == "__main__":
    sys.exit(run())
